"""Linear layers of a training in bfloat16 on processors of Intel with AMX, where torch's own products wait for memory.

The backward pass of ``y = x W^T`` needs ``dW = dy^T x``, a sum over all rows, whose factors lie turned in memory.
oneDNN, by which torch multiplies, reaches a third of the forward product's rate there; MKL, which torch carries too,
1.6 times as much. torch rounds the sum to bfloat16 and casts it to the float32 of W; MKL leaves it in float32. Where
torch copies the bias into the output first and adds the product to it, oneDNN's linear operator adds it on the way.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from orrery.kernels.processor import Processor
from orrery.nn.joined_linear import JoinedLinear, PlainLinear
from orrery.nn.parting import Grain

LEAST = 2**26
"""Multiplications from which a layer is computed so: of fewer, what Python does between costs more than it gains."""
ROW_MAJOR, PLAIN, TURNED = 101, 111, 112
"""Layouts, as MKL's header for C numbers them."""


def take_fast_products(model: nn.Module, device: str, processor: Processor) -> None:
    """Have the linear layers of a model that learn be computed as this file says, where that is faster.

    Nothing changes outside autocast to bfloat16. Inside it outputs are torch's, up to the rounding of their bias, and
    gradients of matrices and biases are those that torch rounds to bfloat16, unrounded. A pass without a gradient
    computes what one with it does, to the last bit.

    Args:
        model: changed in place; its parameters stay as they are.
        device: where it will be called.
        processor: what multiplies there.
    """
    amx = processor.vendor == "GenuineIntel" and "amx_bf16" in processor.flags
    if device != "cpu" or not amx or not torch.backends.mkldnn.is_available() or gemm() is None:
        return
    for layer in model.modules():
        if type(layer) is nn.Linear and layer.weight.requires_grad:
            AmxLinear.take_over(layer)
        elif isinstance(layer, JoinedLinear):
            layer.joined.product = linear


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x W^T + b``, of many rows under autocast by :class:`Bfloat16Linear`."""
    narrowed = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    casts = weight.dtype == torch.float32 and x.dtype != torch.float64  # what autocast leaves as it is, it leaves
    if narrowed and casts and x.dim() > 1 and x.numel() * len(weight) >= LEAST:
        output: Tensor = Bfloat16Linear.apply(x, weight, bias)
        return output
    return F.linear(x, weight, bias)


@final
class AmxLinear(PlainLinear):
    """A linear layer by :func:`linear`. Shapes: ``[..., D]`` to ``[..., E]``."""

    parting: ClassVar = Grain.TOKEN

    @classmethod
    def take_over(cls, layer: nn.Linear) -> None:
        """Make a layer one of this kind: a class, unlike a function, is the same for torch's compiler in all blocks."""
        layer.__class__ = cls

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return linear(x, self.weight, self.bias)


class Bfloat16Linear(torch.autograd.Function):
    """``x W^T + b`` of factors rounded to bfloat16, with gradients of W and b in float32.

    Shapes: ``x [..., D]``, ``W [E, D]`` and ``b [E]`` to ``[..., E]`` in bfloat16.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply, and keep the rounded factors."""
        narrow = x.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(*narrow)
        ctx.dtype = x.dtype
        multiply = torch.ops.orrery.forward_product if torch.compiler.is_compiling() else _forward_product
        return multiply(*narrow, None if bias is None else bias.bfloat16())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """Return the gradients of x, W and b."""
        x, weight = ctx.saved_tensors
        summed = torch.ops.orrery.summed_product if torch.compiler.is_compiling() else _summed_product
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows_NE = upstream.flatten(0, -2)
        grad_x = (upstream @ weight).to(ctx.dtype) if of_x else None
        grad_weight = summed(rows_NE, x.flatten(0, -2)) if of_weight else None
        return grad_x, grad_weight, summed(rows_NE, rows_NE.new_ones(len(rows_NE), 1))[:, 0] if of_bias else None


def _forward_product(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    """Return ``x W^T + b`` by oneDNN's linear operator."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight_ED, bias_E, "none", [], "")
    return product


def _summed_product(upstream_NE: Tensor, x_ND: Tensor) -> Tensor:
    """Return ``dy^T x`` in float32, of factors in bfloat16, by MKL."""
    (rows, outputs), inputs = upstream_NE.shape, x_ND.shape[1]
    upstream_NE, x_ND = upstream_NE.contiguous(), x_ND.contiguous()
    out_ED = x_ND.new_empty(outputs, inputs, dtype=torch.float32)
    gemm()(
        ROW_MAJOR, TURNED, PLAIN, outputs, inputs, rows, 1.0, upstream_NE.data_ptr(), outputs, x_ND.data_ptr(), inputs,
        0.0, out_ED.data_ptr(), inputs,
    )  # fmt: skip
    return out_ED


# As operations of a graph: torch's compiler cannot look into either.
_forward = torch.library.custom_op("orrery::forward_product", mutates_args=())(_forward_product)
_summed = torch.library.custom_op("orrery::summed_product", mutates_args=())(_summed_product)


@_forward.register_fake
def _(x: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    return x.new_empty(*x.shape[:-1], len(weight_ED))


@_summed.register_fake
def _(upstream_NE: Tensor, x_ND: Tensor) -> Tensor:
    return x_ND.new_empty(upstream_NE.shape[1], x_ND.shape[1], dtype=torch.float32)


@cache
def gemm() -> Any:
    """Return ``cblas_gemm_bf16bf16f32`` of the MKL in torch, or None where there is none that multiplies as expected.

    Its whole numbers are of 32 bits in torch's builds; one with others would read its arguments wrongly, which a small
    product shows.
    """
    routine = next(filter(None, map(_found, (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"))), None)
    if routine is None:
        return None
    whole, real, place = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    routine.argtypes = [*[whole] * 6, real, place, whole, place, whole, real, place, whole]
    routine.restype = None
    a, b = (torch.arange(3 * n, dtype=torch.bfloat16, device="cpu").view(3, n) for n in (2, 3))
    c = a.new_zeros(2, 3, dtype=torch.float32)
    routine(ROW_MAJOR, TURNED, PLAIN, 2, 3, 3, 1.0, a.data_ptr(), 2, b.data_ptr(), 3, 0.0, c.data_ptr(), 3)
    return routine if torch.equal(c, a.float().T @ b.float()) else None


def _found(file: Path) -> Any:
    try:
        return ctypes.CDLL(str(file)).cblas_gemm_bf16bf16f32
    except (OSError, AttributeError):  # a torch without MKL, as those for processors of ARM
        return None
