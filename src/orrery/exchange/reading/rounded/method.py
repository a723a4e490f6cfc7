"""How a program that rounds matrices stores them: which tensors of a file make one, and the formula back to floats."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int, Integer, UInt8
from torch import Tensor

from orrery.exchange.reading.files import Weights


@dataclass(frozen=True)
class RoundedParts:
    """The tensors that make one matrix, by what stands behind the module's name.

    Attributes:
        weights: the files.
        names: their names in the files.
    """

    weights: Weights
    names: Mapping[str, str]

    def __contains__(self, part: str) -> bool:
        return part in self.names

    def __getitem__(self, part: str) -> Tensor:
        """Read one.

        Raises:
            ValueError: it is missing.
        """
        return self.weights[self._name(part)]

    def if_there(self, part: str) -> Tensor | None:
        """Read one; None where the file has none."""
        return self[part] if part in self.names else None

    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape of one, without reading it."""
        return self.weights.entry(self._name(part)).shape

    def dtype(self, part: str) -> torch.dtype:
        """Return the dtype of one, without reading it."""
        return self.weights.entry(self._name(part)).dtype

    def _name(self, part: str) -> str:
        if part not in self.names:
            raise ValueError(f"{part.lstrip('.')} is missing")
        return self.names[part]


class Method(ABC):
    """One program's way to store matrices.

    Attributes:
        marks: the ends of names of which one is there for every matrix.
        ends: the ends of all names that make a matrix.
        whole: the end of the name of the matrix before it was rounded.
        silent: the ends of names of tensors that belong to activations and change no weight.
    """

    marks: ClassVar[tuple[str, ...]]
    ends: ClassVar[tuple[str, ...]]
    whole: ClassVar[str] = ".weight"
    silent: ClassVar[tuple[str, ...]] = ()

    def matrices(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the matrices of a file by the names that they had, each with the tensors that make it."""
        known = set(names)
        stems = [name.removesuffix(mark) for mark in self.marks for name in known if name.endswith(mark)]
        ends = (*self.marks, *self.ends)
        return {
            stem + self.whole: {end: stem + end for end in ends if stem + end in known} for stem in sorted(set(stems))
        }

    @abstractmethod
    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return the shape of a matrix.

        Raises:
            ValueError: a tensor is missing, or shapes do not fit each other.
        """

    @abstractmethod
    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return the dtype of its numbers: that of its scales."""

    @abstractmethod
    def unpack(self, parts: RoundedParts) -> Tensor:
        """Return the matrix.

        Raises:
            ValueError: as in ``shape``, or a number points to no place.
        """


def fields(packed: Integer[Tensor, "*rows words"], bits: int) -> UInt8[Tensor, "*rows numbers"]:
    """Return the whole numbers of so many bits that lie one behind the other in words, the lowest bits first.

    Bits at the end of the last word that make no number are left.
    """
    step = math.gcd(bits, 8)
    shifts = torch.arange(0, 8, step, dtype=torch.uint8)
    pieces = (packed.contiguous().view(torch.uint8)[..., None] >> shifts) & (2**step - 1)
    count = packed.shape[-1] * 32 // bits
    several = pieces.flatten(-2)[..., : count * (bits // step)].unflatten(-1, (count, bits // step))
    return (several << torch.arange(0, bits, step, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def numbers_in(words: int, dtype: torch.dtype, bits: int) -> int:
    """Return how many whole numbers of so many bits lie in a row of words.

    Raises:
        ValueError: they are no words of 32 bits, or the numbers end inside of a word.
    """
    if dtype != torch.int32 or words * 32 % bits:
        raise ValueError(f"{words} words of {str(dtype).removeprefix('torch.')} hold no whole numbers of {bits} bits")
    return words * 32 // bits


def group_of(inputs: int, groups: int, size: int | None, given: Tensor | None = None) -> Int[Tensor, "in"]:
    """Return the group of each input: what the file says, or equal parts, the last of which may be shorter.

    Raises:
        ValueError: a group that has no scale.
    """
    if given is not None:
        if given.shape != (inputs,) or int(given.min()) < 0 or int(given.max()) >= groups:
            raise ValueError(f"an input's group is none of the {groups}")
        return given.long()
    wide = inputs if size is None or size <= 0 else size
    if -(-inputs // wide) != groups:
        raise ValueError(
            f"{inputs} inputs in groups of {wide} are {-(-inputs // wide)} groups, and {groups} have scales"
        )
    return torch.arange(inputs) // wide


def spread(scale: Float[Tensor, "*stack r c"], shape: tuple[int, ...], block: tuple[int, int]) -> Tensor:
    """Return the scale of each number of a matrix from those of its blocks; the last ones may be shorter.

    Raises:
        ValueError: another number of blocks has scales.
    """
    spread_scale = scale
    for axis, size in zip((-2, -1), block, strict=True):
        count = spread_scale.shape[axis]
        if -(-shape[axis] // size) != count:
            raise ValueError(f"{shape[axis]} numbers in blocks of {size}, and {count} blocks have scales")
        spread_scale = spread_scale.repeat_interleave(size, axis).narrow(axis, 0, shape[axis])
    return spread_scale


def scaled(steps: Tensor, zero: Tensor, scale: Tensor) -> Tensor:
    """Return ``(whole - zero) scale`` in the dtype of the scale, rounded once."""
    return ((steps.float() - zero.float()) * scale.float()).to(floats(scale.dtype))


def floats(of_scales: torch.dtype) -> torch.dtype:
    """Return the dtype of what has scales of a dtype: the same; bfloat16 where a scale is a byte."""
    return torch.bfloat16 if of_scales.itemsize == 1 else of_scales


def two(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns.

    Raises:
        ValueError: it is the shape of no matrix.
    """
    if len(shape) != 2:
        raise ValueError(f"{list(shape)} is the shape of no matrix")
    return shape[0], shape[1]


def same(what: str, shape: Any, wanted: Any) -> None:
    """Refuse a shape that is not the one that is needed.

    Raises:
        ValueError: it is another.
    """
    if tuple(shape) != tuple(wanted):
        raise ValueError(f"{what} have the shape {list(shape)}, and {list(wanted)} is needed")
