"""Products of float32 matrices through oneDNN, where torch's own reach half of what the processor can do."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from orrery.kernels.processor import Processor


def doubles_float32(processor: Processor) -> bool:
    """Say whether torch's own product of float32 is the slower one here.

    It comes from MKL, which on processors of AMD leaves the wide registers of AVX-512 unused. Timings play no part, so
    that the same machine always multiplies in the same way.
    """
    amd = processor.vendor == "AuthenticAMD" and "avx512f" in processor.flags
    return amd and "amx_tile" not in processor.flags and torch.backends.mkldnn.is_available()


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x W^T + b`` in float32 by oneDNN's linear operator."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


def fits(x: Tensor, weight: Tensor) -> bool:
    """Say whether the operator takes these: matrices of float32 on the CPU, and numbers in them; it refuses no rows."""
    here = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
    return here and x.dim() >= 2 and bool(x.numel()) and bool(weight.numel())


class OneDnnProducts(TorchFunctionMode):
    """Inside it every ``F.linear`` of float32 on the CPU is oneDNN's, where no gradient is asked for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and not torch.is_grad_enabled():
            x, weight, bias = (*args, *kwargs.values(), None)[:3]
            if fits(x, weight):
                return product(x, weight, bias)
        return func(*args, **kwargs)
