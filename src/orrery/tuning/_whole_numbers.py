"""Matrices stored as whole numbers with scales: rounding them and writing them out."""

import torch
from jaxtyping import Float, Int8, Num, UInt8
from torch import Tensor

Whole = Int8[Tensor, "out in"] | UInt8[Tensor, "out half"]
"""Eight bits a number, or two numbers of four bits a byte."""

BLOCK = 1 << 22
"""Numbers that are rounded at once: more would be memory alone."""

_EIGHT, FOUR = 127, 8
_LEAST_HALF = torch.finfo(torch.float16).smallest_normal
_SHRINKINGS = 16
"""Scales that are tried for a group of four-bit numbers, from that of the largest magnitude downwards."""


def group_of(inputs: int, group: int) -> int | None:
    """Return how many inputs share a scale: the largest part of ``inputs`` up to ``group``, nothing if there is none.

    Parts are even, since two numbers share a byte, and multiples of 32 where there are any, which the kernel reads
    fastest.
    """
    group = min(group, inputs)
    for step in (32, 2):
        for size in range(group - group % step, 0, -step):
            if inputs % size == 0:
                return size
    return None


def rounded(weight: Float[Tensor, "out in"], bits: int, group: int) -> tuple[Whole, Float[Tensor, "out groups"]]:
    """Return a matrix in whole numbers, and the scale of each group of inputs.

    Eight bits: ``q = round(w / s)`` with ``s = max|w| / 127``, at most 127. Four bits: sixteen scales from that of the
    largest magnitude downwards, of which the one with the least squared error is taken, and then
    ``s = (w . q) / (q . q)``, the best for these numbers. A group of zeros has the scale one. Scales are numbers of
    float16, see `in_half`.
    """
    outputs, groups = len(weight), weight.shape[1] // group
    if weight.is_meta:
        stored = weight.new_empty(outputs, weight.shape[1] * bits // 8, dtype=torch.int8 if bits == 8 else torch.uint8)
        return stored, weight.new_empty(outputs, groups)
    rows = max(1, BLOCK // weight.shape[1])
    pieces = [_rounded_rows(piece, bits, group, weight.dtype) for piece in weight.split(rows)]
    return torch.cat([whole for whole, _ in pieces]), torch.cat([scale for _, scale in pieces])


def _rounded_rows(weight: Tensor, bits: int, group: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    numbers = weight.to(torch.promote_types(dtype, torch.float32)).unflatten(1, (-1, group))
    if bits == 8:
        peak = numbers.abs().amax(2, keepdim=True)
        scale = in_half(torch.where(peak > 0, peak / _EIGHT, 1.0)).to(dtype)
        whole = steps(numbers, scale, -_EIGHT, _EIGHT)
        return whole.flatten(1).to(torch.int8), scale.squeeze(2)
    scale = in_half(best_scale(numbers)).to(dtype)
    return packed(steps(numbers, scale, -FOUR, FOUR - 1)), scale.squeeze(2)


def in_half(scale: Tensor) -> Tensor:
    """Return scales as float16 has them, where it has: as GGUF keeps them, which then holds the same numbers."""
    half = scale.half().to(scale.dtype)
    return torch.where((half.abs() >= _LEAST_HALF) & half.isfinite(), half, scale)


def packed(whole: Num[Tensor, "out groups inputs"]) -> UInt8[Tensor, "out half"]:
    """Return numbers from -8 to 7 as bytes of two: those of the first half of a group are the low ones."""
    low, high = (whole + FOUR).to(torch.uint8).chunk(2, 2)
    return (low | high << 4).flatten(1)


def steps(numbers: Tensor, scale: Tensor, least: int, most: int) -> Tensor:
    """Return the nearest whole number of each, within bounds."""
    return (numbers / scale).round().clamp(least, most)


def best_scale(
    numbers: Float[Tensor, "out groups inputs"], weights: Float[Tensor, "inputs"] | None = None
) -> Float[Tensor, "out groups one"]:
    """Return the scales of groups in four bits: -8 stands for the largest magnitude, or for less and that is cut.

    ``weights`` say how much the squared error of each number counts, alike by default.
    """
    counted = numbers if weights is None else numbers * weights
    largest = numbers.gather(2, numbers.abs().argmax(2, keepdim=True))
    best, least = torch.ones_like(largest), torch.full_like(largest, torch.inf)
    for step in range(_SHRINKINGS):
        scale = torch.where(largest != 0, largest / -(FOUR + step * 0.25 - 0.5), 1.0)
        whole = steps(numbers, scale, -FOUR, FOUR - 1)
        square = (whole.square() if weights is None else whole.square() * weights).sum(2, keepdim=True)
        scale = torch.where(square > 0, (counted * whole).sum(2, keepdim=True) / square, scale)
        errors = (numbers - scale * whole).square()
        error = (errors if weights is None else errors * weights).sum(2, keepdim=True)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return torch.where(best != 0, best, 1.0)


def whole_numbers(weight: Whole, groups: int) -> Int8[Tensor, "out groups inputs"]:
    """Return the whole numbers of a stored matrix, group by group."""
    numbers = weight.unflatten(1, (groups, -1))
    if weight.dtype == torch.uint8:
        numbers = torch.cat((numbers & 15, numbers >> 4), 2).to(torch.int8) - FOUR
    return numbers


def written_out(weight: Whole, scale: Float[Tensor, "out groups"]) -> Float[Tensor, "out in"]:
    """Return the matrix that whole numbers and scales stand for, in the dtype of the scales."""
    return (whole_numbers(weight, scale.shape[1]).to(scale.dtype) * scale[:, :, None]).flatten(1)
