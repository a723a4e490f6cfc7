"""Numbers of eight bits with a scale for a block, a row or the whole matrix: FP8, and whole ones of bitsandbytes."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.exchange.reading.rounded.method import Method, RoundedParts, floats, same, spread


@dataclass(frozen=True)
class Fp8(Method):
    """``W = w s``, w in eight bits with an exponent (E4M3), s for a block, a row or the whole matrix.

    Attributes:
        name: what the configuration calls the program.
        marks: how it calls the scales, one or the other.
        block: rows and columns that share a scale, where blocks do.
    """

    ends: ClassVar[tuple[str, ...]] = (".weight",)
    silent: ClassVar[tuple[str, ...]] = (
        ".activation_scale", ".input_scale", ".input_scale_ub", ".k_scale", ".v_scale", ".kv_scale",
    )  # fmt: skip
    name: str
    marks: tuple[str, ...]  # type: ignore[misc]
    block: tuple[int, int] | None

    def __str__(self) -> str:
        return self.name

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return that of what is stored."""
        return parts.shape(".weight")

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales."""
        return floats(parts.dtype(self._mark(parts)))

    def unpack(self, parts: RoundedParts) -> Tensor:
        """Return the matrix."""
        weight, scale = parts[".weight"], parts[self._mark(parts)]
        if weight.dtype not in (torch.float8_e4m3fn, torch.float8_e5m2):
            raise ValueError(f"numbers of {weight.dtype} are not of eight bits with an exponent")
        blocks = scale.dim() >= 2 and self.block is not None
        scale_of_each = (
            spread(scale.float(), tuple(weight.shape), self.block) if blocks and self.block else scale.float()
        )
        return _broadcast(weight.float(), scale_of_each).to(self.dtype(parts))

    def _mark(self, parts: RoundedParts) -> str:
        return next(mark for mark in self.marks if mark in parts)


class Bits8(Method):
    """``W[o, i] = w[o, i] s[o] / 127`` (Dettmers et al. 2022, LLM.int8)."""

    marks: ClassVar[tuple[str, ...]] = (".SCB",)
    ends: ClassVar[tuple[str, ...]] = (".weight", ".weight_format")

    def __str__(self) -> str:
        return "bitsandbytes to 8 bits"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return that of what is stored."""
        return parts.shape(".weight")

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales."""
        return parts.dtype(".SCB")

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "out in"]:
        """Return the matrix."""
        weight, most_E = parts[".weight"], parts[".SCB"]
        if weight.dtype != torch.int8:
            raise ValueError(f"numbers of {weight.dtype} are no bytes")
        same("scales", most_E.shape, weight.shape[:1])
        turned = parts.if_there(".weight_format")
        if turned is not None and bool(turned.any()):
            raise ValueError("its numbers lie in tiles of a graphics card, and not in rows")
        return weight.to(most_E.dtype) * (most_E / 127)[:, None]


def _broadcast(weight: Tensor, scale: Tensor) -> Tensor:
    if scale.numel() == 1:
        return weight * scale.reshape(())
    if scale.shape == weight.shape:
        return weight * scale
    same("scales", scale.reshape(-1).shape, weight.shape[:1])
    return weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
