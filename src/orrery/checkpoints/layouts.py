"""Layouts: how tensors of ours lie inside one tensor of a published file. Each can be undone."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


class Layout(ABC):
    """A way to put tensors into one, and to take them out again."""

    @abstractmethod
    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return their tensor, made of ours."""

    @abstractmethod
    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return our tensors of these shapes, cut from theirs."""


@dataclass(frozen=True)
class Rows(Layout):
    """One below the other; a single tensor is itself."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the parts concatenated along the rows."""
        return parts[0] if len(parts) == 1 else _together(parts)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the tensor cut into the parts' rows."""
        return [tensor] if len(shapes) == 1 else list(tensor.split([shape[0] for shape in shapes]))


@dataclass(frozen=True)
class Transposed(Layout):
    """One below the other, then rows and columns exchanged (GPT-2's width-one convolution)."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the parts concatenated and transposed."""
        return ROWS.join(parts).mT

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the parts of the transposed tensor."""
        return ROWS.split(tensor.mT, shapes)


@dataclass(frozen=True)
class GroupInterleaved(Layout):
    """Group by group: the rows of the first group of every part, then those of the second, and so on.

    With ``groups`` heads it is BLOOM's and NeoX's fused matrix (q, k and v of head 0, then of head 1); with a group
    for each key-value head it is Falcon's (all its queries, its key, its value).
    """

    groups: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the parts interleaved group by group."""
        return _together([part.unflatten(0, (self.groups, -1)) for part in parts], dim=1).flatten(0, 1)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the parts of every group, each concatenated."""
        sizes = [shape[0] // self.groups for shape in shapes]
        return [part.flatten(0, 1) for part in tensor.unflatten(0, (self.groups, -1)).split(sizes, dim=1)]


@dataclass(frozen=True)
class Reshaped(Layout):
    """The same numbers in the same order, with axes of size one in front (BART's ``final_logits_bias``)."""

    axes: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Add the axes."""
        return parts[0].reshape((1,) * self.axes + tuple(parts[0].shape))

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the tensor without the dimensions that were added."""
        return [tensor.reshape(shapes[0])]


@dataclass(frozen=True)
class Layered(Layout):
    """A table a layer along a new first axis, behind it one of size one (YOLOS' positions between its blocks)."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the tables of all layers in one."""
        return _stacked(parts).unsqueeze(1)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the table of every layer."""
        return list(tensor.squeeze(1))


@dataclass(frozen=True)
class OnePoint(Layout):
    """A matrix as a convolution of one by one point: two axes of size one behind it."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Add the axes."""
        return parts[0][..., None, None]

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the tensor without them."""
        return [tensor[..., 0, 0]]


@dataclass(frozen=True)
class NegativeExponential(Layout):
    """``-exp(a)`` of every number, with axes of size one behind: the rates of a state space, which we store as logs."""

    axes: int = 0

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the rates."""
        return _column(-torch.exp(parts[0]), self.axes)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return their logarithms; a rate that is not below zero has none, and is found to be no finite number."""
        return [torch.log(-tensor.reshape(shapes[0]))]


@dataclass(frozen=True)
class Column(Layout):
    """The same numbers with an axis of size one behind: one number a head (GGUF's Mamba-2)."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Add the axis."""
        return _column(parts[0], 1)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the tensor without it."""
        return [tensor.reshape(shapes[0])]


@dataclass(frozen=True)
class Grouped(Layout):
    """A vector cut into a row for each group, or a matrix into one (Mamba-2's gains and DeepSeek's values in GGUF)."""

    groups: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Cut it."""
        return parts[0].unflatten(0, (self.groups, -1))

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the rows one behind the other."""
        return [tensor.flatten(0, 1)]


@dataclass(frozen=True)
class GroupTransposed(Layout):
    """A matrix cut into one a group of its rows, each with rows and columns exchanged (DeepSeek's keys in GGUF)."""

    groups: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Cut it, and turn every piece."""
        return parts[0].unflatten(0, (self.groups, -1)).mT

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Turn the pieces back, and put them one below the other."""
        return [tensor.mT.flatten(0, 1)]


@dataclass(frozen=True)
class Depthwise(Layout):
    """A filter a channel, without the axis of the one channel that it reads (GGUF's short convolutions)."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Leave the axis out."""
        return parts[0][:, 0]

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the filters with it."""
        return [tensor[:, None]]


@dataclass(frozen=True)
class RotaryInterleaved(Layout):
    """Within each head, channel i beside channel i + C/2: the pairs of a rotation as neighbours (GGUF's Llama)."""

    heads: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Take the two halves of every head in turns."""
        return parts[0].unflatten(0, (self.heads, 2, -1)).transpose(1, 2).flatten(0, 2)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Put the halves one behind the other again."""
        return [tensor.unflatten(0, (self.heads, -1, 2)).transpose(1, 2).flatten(0, 2)]


@dataclass(frozen=True)
class HalvesExchanged(Layout):
    """Within each head, the second half before the first: heads that turn the other way round (nanochat)."""

    heads: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Exchange the two halves of every head."""
        first, second = parts[0].unflatten(0, (self.heads, 2, -1)).unbind(1)
        return _stacked([second, first], 1).flatten(0, 2)

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Exchange them again."""
        return [self.join([tensor])]


@dataclass(frozen=True)
class Shifted(Layout):
    """A constant added to every number: gains that we store less one (Gemma), and GGUF whole."""

    by: float

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the tensor with the constant added."""
        return parts[0] + self.by

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the tensor with the constant subtracted."""
        return [tensor - self.by]


@dataclass(frozen=True)
class FirstLessSecond(Layout):
    """Two rows, of which ours is the first less the second: what a sigmoid makes of it is their softmax."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return our row above one of zeros."""
        return _together([parts[0], torch.zeros_like(parts[0])])

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return the difference, which halves could not hold."""
        first, second = tensor.float().chunk(2)
        return [first - second]


@dataclass(frozen=True)
class Stacked(Layout):
    """Along a new first axis: the experts of a mixture in one tensor.

    ``across`` tensors of ours make one expert (gate and up), side by side or, ``interleaved``, row by row in turns;
    ``turned`` exchanges rows and columns of every expert. Ours are listed expert by expert.
    """

    across: int = 1
    interleaved: bool = False
    turned: bool = False

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Put every expert together and stack them."""
        experts = [parts[i : i + self.across] for i in range(0, len(parts), self.across)]
        joined = [_stacked(e, 1).flatten(0, 1) if self.interleaved else ROWS.join(e) for e in experts]
        stacked = _stacked(joined)
        return stacked.mT if self.turned else stacked

    def split(self, tensor: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Return one tensor for each expert and part."""
        parts: list[Tensor] = []
        for expert in tensor.mT if self.turned else tensor:
            if self.interleaved:
                parts += list(expert.unflatten(0, (-1, self.across)).unbind(1))
            else:
                parts += list(expert.chunk(self.across))
        return parts


def _column(tensor: Tensor, axes: int) -> Tensor:
    """Return a tensor with axes of size one behind its own."""
    return tensor.reshape(*tensor.shape, *(1,) * axes)


def _together(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return the parts concatenated.

    On the meta device, where only shapes are asked for, torch answers ``cat`` with a decomposition whose import takes
    longer than a small model's first token.
    """
    if not parts[0].is_meta:
        return torch.cat(list(parts), dim)
    shape = list(parts[0].shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    return parts[0].new_empty(shape)


def _stacked(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return the parts along a new axis."""
    return _together([part.unsqueeze(dim) for part in parts], dim)


ROWS, TURNED = Rows(), Transposed()
