"""Activations by name; a new one is a new entry."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.errors import UsageError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "linear": lambda x: x,
}
"""relu: Vaswani et al.; gelu: Hendrycks and Gimpel 2016, exact; gelu_tanh: its tanh form (GPT-2); silu: Llama."""


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return ACTIVATIONS[name]
    except KeyError:
        raise UsageError(f"no activation {name!r}", f"there are: {', '.join(ACTIVATIONS)}") from None
