"""Models without memory: every parameter has its shape and no numbers yet."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from orrery.models.model import Model, ModelSpec

_DRAWS = (Tensor.normal_, nn.init.normal_)


class _Undrawn(TorchFunctionMode):
    """Leaves out drawing initial weights, which there is no memory for.

    On the meta device torch answers ``normal_`` with a decomposition, whose import takes two seconds.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the tensor of a draw as it is, and do everything else."""
        given = kwargs or {}
        if func in _DRAWS:
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def build_on_meta(spec: ModelSpec) -> Model:
    """Build a model on the meta device."""
    with torch.device("meta"), _Undrawn():
        return spec.build()
