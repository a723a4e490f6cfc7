"""Products with a matrix that is not stored as floats: by a kernel for few rows, else by parts that are written out."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from orrery.checkpoints.gguf_blocks import unpacked
from orrery.checkpoints.gguf_file import Kind
from orrery.kernels.readiness import at_hand
from orrery.tuning._whole_numbers import written_out

FEW_ROWS = 32
"""Rows for which a kernel reads the stored numbers; for more a matrix that is written out is multiplied faster."""
ROWS_A_THREAD = 16
"""The same for blocks, for each of torch's threads: blocks are written out by one, and all multiply."""
PART = 1 << 22
"""Numbers that are written out at once: more would be memory alone."""


class StoredMatrix(ABC):
    """A matrix ``[out, in]`` in another form than floats, ``weight`` with one row for each output channel."""

    weight: Tensor
    length: int

    @abstractmethod
    def written(self, first: int, last: int) -> Float[Tensor, "rows in"]:
        """Return the rows from ``first`` to before ``last`` as floats."""

    def passing(self, first: int, last: int) -> Float[Tensor, "rows in"]:
        """Return them in memory that the next call in this thread writes over, where that is faster."""
        return self.written(first, last)

    def few_rows(self) -> int:
        """Return how many rows a kernel multiplies."""
        return FEW_ROWS

    @abstractmethod
    def by_kernel(self, x: Float[Tensor, "M in"], out: Float[Tensor, "M out"]) -> None:
        """Write ``x W^T`` into ``out``, both float32; at most ``few_rows`` rows."""

    def parts(self) -> list[tuple[int, int]]:
        """Return the rows that are written out at once, from and to."""
        step, rows = max(1, PART // self.length), len(self.weight)
        return [(first, min(rows, first + step)) for first in range(0, rows, step)]


@dataclass(frozen=True)
class WholeNumbers(StoredMatrix):
    """Whole numbers with scales, as ``QuantisedLinear`` describes them."""

    weight: Tensor
    scale: Tensor

    @property
    def length(self) -> int:  # type: ignore[override]
        """The numbers of a row."""
        return self.weight.shape[1] * (1 if self.weight.dtype == torch.int8 else 2)

    @property
    def group(self) -> int:
        """The numbers that share a scale."""
        return self.length // self.scale.shape[1]

    def written(self, first: int, last: int) -> Float[Tensor, "rows in"]:
        """Multiply with the scales, in their dtype."""
        return written_out(self.weight[first:last], self.scale[first:last])

    def by_kernel(self, x: Float[Tensor, "M in"], out: Float[Tensor, "M out"]) -> None:
        """Read every whole number once."""
        from orrery.kernels.quantised import product

        scales = self.scale.detach().to(torch.float32).contiguous()
        product(self.weight.detach().contiguous().numpy(), scales.numpy(), x.numpy(), out.numpy())


@dataclass(frozen=True)
class Blocks(StoredMatrix):
    """The blocks of a GGUF file, uint8 ``[out, bytes of a row]``."""

    weight: Tensor
    kind: Kind

    @property
    def length(self) -> int:  # type: ignore[override]
        """The numbers of a row."""
        return self.weight.shape[1] // self.kind.size * self.kind.block

    def written(self, first: int, last: int) -> Float[Tensor, "rows in"]:
        """Unpack rows, into float32."""
        return self._unpacked(first, last, partial(torch.empty, dtype=torch.float32))

    def passing(self, first: int, last: int) -> Float[Tensor, "rows in"]:
        """Unpack rows into this thread's own memory: what is new to a process comes in pages of 4 KB, which is slow."""
        return self._unpacked(first, last, _own)

    def _unpacked(self, first: int, last: int, place: Callable[[int, int], Tensor]) -> Float[Tensor, "rows in"]:
        rows = self.weight.detach()[first:last]
        if rows.device.type == "cpu" and at_hand():
            from orrery.kernels.blocks import write_out
            from orrery.kernels.compiled import set_threads

            out = place(last - first, self.length)
            # One thread writes out PART numbers in half a millisecond. To wake threads of the kernels' own takes longer
            # while torch's, from the product before, are still awake on every core (64 rows: 1.5 times as long).
            set_threads(1)
            write_out(self.kind.name, rows.contiguous().numpy(), out.numpy())
            return out
        return unpacked(rows, self.kind)

    def few_rows(self) -> int:
        """Return fewer where torch has one thread."""
        return min(FEW_ROWS, ROWS_A_THREAD * torch.get_num_threads())

    def by_kernel(self, x: Float[Tensor, "M in"], out: Float[Tensor, "M out"]) -> None:
        """Read every block once."""
        from orrery.kernels.blocks import product

        product(self.kind.name, self.weight.detach().contiguous().numpy(), x.numpy(), out.numpy())


class _Product(torch.autograd.Function):
    """``x W^T``, whose gradient writes the matrix out again instead of keeping it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stored: StoredMatrix) -> Tensor:
        ctx.save_for_backward(stored.weight)
        ctx.stored, ctx.dtype = stored, x.dtype
        return _product(x, stored)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        stored, total = ctx.stored, None
        for first, last in stored.parts():
            part = gradient[..., first:last]
            product = part @ stored.written(first, last).to(part.dtype)
            total = product if total is None else total + product
        assert total is not None
        return total.to(ctx.dtype), None


def multiply(x: Float[Tensor, "*rows in"], stored: StoredMatrix) -> Tensor:
    """Return ``x W^T`` without keeping the matrix W that is written out."""
    if x.requires_grad and torch.is_grad_enabled():
        product: Tensor = _Product.apply(x, stored)
        return product
    return _product(x, stored)


def _product(x: Tensor, stored: StoredMatrix) -> Tensor:
    if _has_kernel(x, stored.few_rows()):
        return _by_kernel(x, stored)
    products = [F.linear(x, stored.passing(*part).to(x.dtype)) for part in stored.parts()]
    return products[0] if len(products) == 1 else torch.cat(products, -1)


class _Memory(threading.local):
    """What each thread unpacks matrices into."""

    numbers = torch.empty(0)


_memory = _Memory()


def _own(rows: int, width: int) -> Tensor:
    """Return a matrix in this thread's memory, which grows to what is asked for."""
    if _memory.numbers.numel() < rows * width:
        _memory.numbers = torch.empty(rows * width, device="cpu", dtype=torch.float32)
    return _memory.numbers[: rows * width].view(rows, width)


def _has_kernel(x: Tensor, few_rows: int) -> bool:
    """Say whether a kernel multiplies these rows: few, on a CPU, in float32 or less, neither traced nor cast."""
    return (
        0 < x.numel() <= few_rows * x.shape[-1]
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and at_hand()
    )


def _by_kernel(x: Tensor, stored: StoredMatrix) -> Tensor:
    _set_threads()
    rows = x.detach().reshape(-1, x.shape[-1]).to(torch.float32).contiguous()
    out = torch.empty(len(rows), len(stored.weight), dtype=torch.float32)
    stored.by_kernel(rows, out)
    return out.view(*x.shape[:-1], -1).to(x.dtype)


def _set_threads() -> None:
    from orrery.kernels.compiled import set_threads

    set_threads(torch.get_num_threads())
