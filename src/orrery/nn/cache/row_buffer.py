"""Tensors of rows with room behind them: rows join and leave without a copy of those that stay."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from orrery.nn.cache.blank import blank

Depths = dict[int, Tensor]


@final
class RowBuffer:
    """A tensor ``[B, ...]`` a depth, the first rows of a larger one.

    Rows that join are written into the room behind the others, which doubles where it is too small; where rows leave,
    only those that take another's place are copied. So a row that joins or leaves costs a row, and not the batch.

    Attributes:
        depths: the rows in use, by depth: contiguous views, which every change replaces.
        changes: how often they were replaced: as long as it stays the same, they are where they were.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.depths: Depths = {}
        self._whole: Depths = {}

    def put(self, depth: int, x: Tensor) -> None:
        """Let these be the rows of a depth, without room."""
        self.changes += 1
        self.depths[depth] = self._whole[depth] = x

    def widen(self, slots: int, rows: int = 0) -> None:
        """Append so many empty slots to each row (the third axis), and have room for so many rows more.

        The new slots are zeros: what is hidden is multiplied with 0, which must be a number.
        """
        self.changes += 1
        for depth, x in self.depths.items():
            count, old = len(x) + rows, x.shape[2]
            room = len(self._whole[depth])
            room = room if count <= room else max(count, 2 * len(x))
            buffer = blank(x, (room, x.shape[1], old + slots, *x.shape[3:]))
            buffer[: len(x), :, :old] = x
            self._whole[depth], self.depths[depth] = buffer, buffer[: len(x)]

    def select(self, rows: Sequence[int]) -> None:
        """Keep the given rows, in that order; one may come several times (beams)."""
        self.changes += 1
        moved = [(place, row) for place, row in enumerate(rows) if place != row]
        for depth, x in self.depths.items():
            buffer, count = self._whole[depth], len(rows)
            if len(buffer) // 4 <= count <= len(buffer) and 2 * len(moved) <= count:
                if moved:
                    places, sources = torch.tensor(moved, device=x.device).unbind(1)
                    buffer[places] = x[sources]
                self.depths[depth] = buffer[:count]
            else:
                self.put(depth, x[torch.tensor(rows, dtype=torch.long, device=x.device)])

    def append(self, other: "RowBuffer") -> None:
        """Write the rows of another, of the same shape, behind these."""
        self.changes += 1
        for depth, x in self.depths.items():
            more, buffer = other.depths[depth], self._whole[depth]
            count = len(x) + len(more)
            if count > len(buffer):
                buffer = x.new_empty(max(count, 2 * len(x)), *x.shape[1:])
                buffer[: len(x)] = x
            buffer[len(x) : count] = more
            self._whole[depth], self.depths[depth] = buffer, buffer[:count]

    def copy(self, rows: Sequence[int] | None = None) -> "RowBuffer":
        """Return the given rows, by default all, in memory of their own."""
        new = RowBuffer()
        for depth, x in self.depths.items():
            new.put(depth, copied(x, rows))
        return new

    @property
    def nbytes(self) -> int:
        """The bytes that are allocated, the room among them."""
        return sum(buffer.nbytes for buffer in self._whole.values())


def copied(x: Tensor, rows: Sequence[int] | None) -> Tensor:
    """Return the given rows of a tensor, by default all, in memory of their own."""
    return x.clone() if rows is None else x[torch.tensor(rows, dtype=torch.long, device=x.device)]
