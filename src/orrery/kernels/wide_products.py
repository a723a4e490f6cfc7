"""How many rows are multiplied at once, by the processor: bfloat16 that it lacks in float32, float32 by oneDNN."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from orrery.kernels.onednn import OneDnnProducts, doubles_float32
from orrery.kernels.processor import this_processor

FEW_ROWS = 8
"""Up to here torch's own product of bfloat16 is as fast: writing out a matrix costs as much as some ten rows."""

PART = 2**22
"""Numbers of a matrix that are written out in float32 at once: 16 MiB."""


class WideProducts(TorchFunctionMode):
    """Inside it ``F.linear`` of bfloat16 on a CPU is ``bfloat16(float32(x) float32(W)^T + b)``, where rows are many.

    torch adds up bfloat16 products in float32 too, so the numbers are the same but for the order of the sums. Where
    no instruction multiplies bfloat16, torch's product is five to eight times slower than its float32 one. Gradients
    are left to torch.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and not torch.is_grad_enabled():
            x, weight, bias = (*args, *kwargs.values(), None)[:3]
            here = x.dtype == weight.dtype == torch.bfloat16 and x.device.type == "cpu"
            if here and x.numel() > FEW_ROWS * x.shape[-1]:
                return _product(x, weight, bias)
        return func(*args, **kwargs)


@contextmanager
def wide_products() -> Iterator[None]:
    """Multiply inside as many tokens are read at once on this processor."""
    here = this_processor()
    with ExitStack() as ways:
        if not here.multiplies_bfloat16:
            ways.enter_context(WideProducts())
        if doubles_float32(here):
            ways.enter_context(OneDnnProducts())
        yield


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows, wide = max(1, PART // weight.shape[1]), x.float()
    out = x.new_empty(*x.shape[:-1], len(weight))
    for start in range(0, len(weight), rows):
        part = slice(start, start + rows)
        added = None if bias is None else bias[part].float()
        out[..., part] = F.linear(wide, weight[part].float(), added)
    return out
