"""Batches of replies: of pairs chosen and rejected beside each other, of others each beside one to another prompt."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orrery.data.batches.by_tokens import POOL, Numbers, cut
from orrery.data.batches.choosing_rows import row_batches
from orrery.data.batches.token_windows import PureSource
from orrery.errors import DataError, UsageError


class RenderedReply(NamedTuple):
    """A conversation as ids, where its last reply begins, and how many ids the template writes behind its end.

    A reward model reads those too, as one does that was given the template's whole text; nothing learns to write them.
    """

    ids: list[int]
    start: int
    after: int = 0


class PreferencePair(NamedTuple):
    """Two replies to one prompt, and by how much the first is better."""

    chosen: RenderedReply
    rejected: RenderedReply
    margin: float


class SingleReply(NamedTuple):
    """One reply, and whether it is desirable."""

    side: RenderedReply
    desirable: bool


Batch = dict[str, Tensor]


def paired(rows: Sequence[PreferencePair]) -> Batch:
    """Return ``ids``, ``real`` and ``reply`` [B, 2, L], the chosen side first, and ``margin`` [B]."""
    return {
        **_sides([(row.chosen, row.rejected) for row in rows]),
        "margin": torch.tensor([row.margin for row in rows]),
    }


def mismatched(length: int) -> Callable[[Sequence[SingleReply]], Batch]:
    """Return what makes a batch of replies that stand alone, of rows of at most ``length`` tokens.

    ``ids``, ``real`` and ``reply`` are [B, 2, L], the second side of each its prompt with the reply of the row before
    it, of the first row that of the last; ``desirable`` is [B].
    """

    def made(rows: Sequence[SingleReply]) -> Batch:
        sides = [row.side for row in rows]
        beside = []
        for own, other in zip(sides, [sides[-1], *sides[:-1]], strict=True):
            ids = own.ids[: own.start] + other.ids[other.start :]
            beside.append(
                (own, RenderedReply(ids[:length], own.start, max(0, other.after - max(0, len(ids) - length))))
            )
        return {**_sides(beside), "desirable": torch.tensor([row.desirable for row in rows])}

    return made


def _sides(rows: Sequence[tuple[RenderedReply, RenderedReply]]) -> Batch:
    """Return two sides a row as [B, 2, L], padded on the right."""
    width = max(len(side.ids) for row in rows for side in row)
    ids = np.zeros((len(rows), 2, width), np.int64)
    starts = torch.tensor([[side.start for side in row] for row in rows])[..., None]
    ends = torch.tensor([[len(side.ids) for side in row] for row in rows])[..., None]
    for number, row in enumerate(rows):
        for place, side in enumerate(row):
            ids[number, place, : len(side.ids)] = side.ids
    places, after_B21 = torch.arange(width), torch.tensor([[side.after for side in row] for row in rows])[..., None]
    replies = (places >= starts) & (places < ends - after_B21)
    return {"ids": torch.from_numpy(ids), "real": places < ends, "reply": replies}


def lengths_of(rows: Sequence[PreferencePair | SingleReply]) -> Numbers:
    """Return the positions that each row takes, [row, side]."""
    sides = [(row.chosen, row.rejected) if isinstance(row, PreferencePair) else (row.side, row.side) for row in rows]
    return np.array([[len(side.ids) for side in both] for both in sides], np.int64).reshape(-1, 2)


class PreferenceBatches(PureSource):
    """Every epoch visits each row once, in batches of rows of like length, of ``size`` rows or ``tokens`` a side.

    Args:
        rows: pairs, or replies that stand alone.
        make: what makes a batch of them.
        size: rows of a batch.
        seed: of the run.
        tokens: positions of a batch on each side, in the place of so many rows.

    Raises:
        DataError: there is no row.
    """

    def __init__(
        self,
        rows: Sequence[PreferencePair] | Sequence[SingleReply],
        make: Callable[..., Batch],
        size: int,
        seed: int,
        tokens: int | None,
    ) -> None:
        _check(rows)
        self.rows, self.make, self.lengths = rows, make, lengths_of(rows)
        pool = POOL if tokens else max(1, min(POOL, len(rows) // size))
        self.batches = row_batches(self.lengths, size, tokens, seed, pool)
        self.tokens_per_step = 2 * (tokens or size * int(self.lengths.max()))
        self.rows_per_epoch = len(rows)

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``."""
        return self.make([self.rows[number] for number in self.batches.rows(step)])


class SequentialPreferences(PureSource):
    """All rows, those of like length together, for evaluation: ``size`` a batch, or as many as ``tokens`` hold.

    Raises:
        DataError: there is no row.
    """

    def __init__(
        self,
        rows: Sequence[PreferencePair] | Sequence[SingleReply],
        make: Callable[..., Batch],
        size: int,
        tokens: int | None,
    ) -> None:
        _check(rows)
        order = lengths_of(rows).max(axis=1).argsort(kind="stable")
        self.rows, self.make = [rows[number] for number in order], make
        lengths = lengths_of(self.rows)
        by_size = (slice(start, start + size) for start in range(0, len(rows), size))
        self.slices = list(by_size if tokens is None else cut(lengths, tokens))
        self.tokens_per_step = 2 * (tokens or size * int(lengths.max()))
        self.rows_per_epoch = len(rows)

    def __len__(self) -> int:
        return len(self.slices)

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        if not 0 <= step < len(self):
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        return self.make(self.rows[self.slices[step]])


def _check(rows: Sequence[PreferencePair | SingleReply]) -> None:
    if not rows:
        raise DataError("there are 0 preferences to learn from", "give the recipe's data a file that has some")
