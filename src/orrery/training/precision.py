"""The arithmetic of a run: dtype, matmul path and threads, chosen from the processor and a numeric probe."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from orrery.errors import MachineError
from orrery.kernels.onednn import doubles_float32, fits, product
from orrery.kernels.processor import Processor

Dtype = Literal["float32", "bfloat16"]
Path_ = Literal["plain", "onednn", "autocast"]


@dataclass(frozen=True)
class Precision:
    """How matrices are multiplied in a run; weights, norms, softmax, loss and optimizer stay float32.

    ``plain`` is torch's own float32, ``onednn`` float32 through oneDNN's linear operator, ``autocast``
    bfloat16 products of float32 weights. Results are equal byte by byte only between runs of equal precision.
    """

    dtype: Dtype
    path: Path_
    device: str
    threads: int

    @property
    def described(self) -> str:
        """The choice in words."""
        return f"{self.dtype} ({self.path}) on {self.device}, {self.threads} threads"

    def context(self) -> AbstractContextManager[Any]:
        """Return the context in which a forward pass of this precision runs."""
        if self.path == "autocast":
            return torch.autocast(self.device, torch.bfloat16)
        return OneDnnLinears() if self.path == "onednn" else nullcontext()

    def state(self) -> dict[str, Any]:
        """Return the choice as JSON values, for the checkpoint."""
        return asdict(self)


class OneDnnLinear(torch.autograd.Function):
    """``x W^T + b`` in float32 through oneDNN, with its gradients through the same operator."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply and keep the factors."""
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """Return the gradients of x, W and b."""
        x, weight = ctx.saved_tensors
        rows, inputs = upstream.flatten(0, -2), x.flatten(0, -2)
        grad_x = product(upstream, weight.t().contiguous(), None) if ctx.needs_input_grad[0] else None
        grad_weight = product(rows.t().contiguous(), inputs.t().contiguous(), None)
        return grad_x, grad_weight, rows.sum(0) if ctx.biased else None


class OneDnnLinears(TorchFunctionMode):
    """Inside this context every float32 ``F.linear`` on the CPU goes through oneDNN."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear:
            x, weight, bias = (*args, *kwargs.values(), None)[:3]
            if fits(x, weight):
                return OneDnnLinear.apply(x, weight, bias)
        return func(*args, **kwargs)


def choose_precision(requested: str, device: str, processor: Processor, threads: int) -> Precision:
    """Choose dtype and matmul path from the processor's features, each confirmed by a numeric probe.

    ``auto`` is bfloat16 where the processor multiplies it natively (avx512_bf16, AMX, or a GPU that does),
    else float32. float32 takes oneDNN's operator on AMD processors without AMX, where torch's default reaches
    under half of its speed; elsewhere torch's own. Timings play no part, so the same machine always chooses
    the same.
    """
    if requested == "bfloat16" or (requested == "auto" and has_bfloat16(device, processor)):
        return confirmed(Precision("bfloat16", "autocast", device, threads))
    path: Path_ = "onednn" if device == "cpu" and doubles_float32(processor) else "plain"
    return confirmed(Precision("float32", path, device, threads))


def find_device(requested: str) -> str:
    """Return the device that ``training.device`` names; ``auto`` is a GPU where there is one.

    Raises:
        MachineError: it names a GPU, and there is none that torch can use.
    """
    there = torch.cuda.is_available()
    if requested == "cuda" and not there:
        raise MachineError("training.device is cuda, and torch finds no GPU here", "take training.device cpu or auto")
    return "cuda" if there and requested != "cpu" else "cpu"


def has_bfloat16(device: str, processor: Processor) -> bool:
    """Say whether the device multiplies bfloat16 natively."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(processor.flags & {"avx512_bf16", "amx_bf16"})


def confirmed(precision: Precision) -> Precision:
    """Return the precision after a product in it has come out as exactly as its dtype allows.

    Raises ``MachineError`` naming the path: a path that computes something else must not be used quietly.
    """
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(64, 256, generator=generator, dtype=torch.float64) for _ in range(2))
    exact = x @ weight.T
    with torch.no_grad(), precision.context():
        product = F.linear(x.float().to(precision.device), weight.float().to(precision.device)).double().cpu()
    error = ((product - exact).abs().max() / exact.abs().max()).item()
    bound = 2e-2 if precision.dtype == "bfloat16" else 1e-5
    if not error < bound:
        message = f"the {precision.path} path gives {precision.dtype} products with an error of {error:.1e}"
        raise MachineError(message, "choose another with --training.precision float32 or bfloat16")
    return precision


def resumed_precision(saved: dict[str, Any], device: str) -> Precision:
    """Return the precision a run was started with; raise ``MachineError`` if it cannot be followed."""
    precision = Precision(**saved)
    if precision.device != device:
        message = f"the run was started on {precision.device} and would continue on {device}"
        raise MachineError(message, f"resume with --training.device {precision.device}")
    if precision.path == "onednn" and not torch.backends.mkldnn.is_available():
        raise MachineError("the run multiplies through oneDNN, which this torch lacks", "resume where it began")
    return confirmed(precision)
