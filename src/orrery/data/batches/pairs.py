"""Batches of pairs, source and target, each padded on the right to its longest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orrery.data.batches.by_tokens import Numbers, cut
from orrery.data.batches.choosing_rows import row_batches
from orrery.data.batches.token_windows import IGNORE, PureSource
from orrery.errors import DataError, UsageError

Ids = Sequence[int]
Pair = tuple[Ids, Ids]


@dataclass(frozen=True)
class Ends:
    """The tokens around a target: what it begins with where it is read, and what ends it where it is predicted."""

    start: int
    end: int


def pair_batch(pairs: Sequence[Pair], ends: Ends) -> dict[str, Tensor]:
    """Return ``source, source_real, ids, targets``: int64 and bool ``[B, S]``, int64 ``[B, L]``."""
    source, real = _padded([source for source, _ in pairs], 0)
    ids, _ = _padded([[ends.start, *target] for _, target in pairs], 0)
    targets, _ = _padded([[*target, ends.end] for _, target in pairs], IGNORE)
    arrays = {"source": source, "source_real": real, "ids": ids, "targets": targets}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def lengths_of(pairs: Sequence[Pair]) -> Numbers:
    """Return the positions that each pair takes, [pair, side]: those of its source, and of its target with its end."""
    return np.array([(len(source), len(target) + 1) for source, target in pairs], np.int64).reshape(-1, 2)


class PairBatches(PureSource):
    """Every epoch visits each pair once, in batches of pairs of like length, of ``size`` pairs or ``tokens`` a side.

    ``redraw`` gives the ids of a pair for a step in the place of its own, by whose lengths batches are made.
    Raises `DataError` where there is no pair, or one has an empty side.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        ends: Ends,
        size: int,
        seed: int,
        tokens: int | None = None,
        redraw: Callable[[int, int], Pair] | None = None,
    ) -> None:
        _check(pairs)
        self.pairs, self.ends, self.lengths = pairs, ends, lengths_of(pairs)
        self.redraw = redraw or (lambda number, step: self.pairs[number])
        self.batches = row_batches(self.lengths, size, tokens, seed)
        self.tokens_per_step = tokens or size * int(self.lengths[:, 1].max())
        self.rows_per_epoch = len(pairs)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``."""
        return pair_batch([self.redraw(int(number), step) for number in self.batches.rows(step)], self.ends)


class SequentialPairs(PureSource):
    """All pairs in their order, for evaluation: ``size`` a batch, fewer in the last, or as many as ``tokens`` hold."""

    def __init__(self, pairs: Sequence[Pair], ends: Ends, size: int, tokens: int | None = None) -> None:
        _check(pairs)
        self.pairs, self.ends, lengths = pairs, ends, lengths_of(pairs)
        by_size = (slice(start, start + size) for start in range(0, len(pairs), size))
        self.slices = list(by_size if tokens is None else cut(lengths, tokens))
        self.tokens_per_step = tokens or size * int(lengths[:, 1].max())
        self.rows_per_epoch = len(pairs)

    def __len__(self) -> int:
        return len(self.slices)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        if not 0 <= step < len(self):
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        return pair_batch(self.pairs[self.slices[step]], self.ends)


def _padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[NDArray[Any], NDArray[Any]]:
    width = max(map(len, rows))
    filled, real = np.full((len(rows), width), fill, np.int64), np.zeros((len(rows), width), bool)
    for place, row in enumerate(rows):
        filled[place, : len(row)], real[place, : len(row)] = row, True
    return filled, real


def _check(pairs: Sequence[Pair]) -> None:
    if not pairs:
        raise DataError("there are 0 pairs", "give two files of as many lines")
    for number, (source, target) in enumerate(pairs):
        if not len(source) or not len(target):
            side = "target" if len(source) else "source"
            raise DataError(f"pair {number} has an empty {side}", "leave such pairs out")
