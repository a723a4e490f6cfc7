"""Batches of pairs, source and target, each padded on the right to its longest."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orrery.data.batches import IGNORE, PureSource
from orrery.data.order import Shuffled
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


class PairBatches(PureSource):
    """Every epoch visits each pair once, in batches of pairs of like length: shuffled, then sorted within a pool.

    Raises `DataError` where there is no pair, or one has an empty side.
    """

    def __init__(self, pairs: Sequence[Pair], ends: Ends, size: int, seed: int, pool: int = 64) -> None:
        _check(pairs)
        self.pairs, self.ends, self.size, self.seed, self.pool = pairs, ends, size, seed, pool
        self.order = Shuffled(len(pairs), seed)
        self.tokens_per_step = size * max(len(target) + 1 for _, target in pairs)
        self.rows_per_epoch = len(pairs)
        self._pool = lru_cache(maxsize=2)(self._sorted_pool)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, of the pool it lies in."""
        numbers = self._pool(step // self.pool)[step % self.pool]
        return pair_batch([self.pairs[number] for number in numbers], self.ends)

    def _sorted_pool(self, pool: int) -> NDArray[np.int64]:
        """Return the numbers of the pairs of a pool, [batch of the pool, row]."""
        count = self.pool * self.size
        numbers = self.order.items(pool * count, (pool + 1) * count)
        lengths = [(len(self.pairs[number][1]), len(self.pairs[number][0])) for number in numbers]
        order = sorted(range(count), key=lengths.__getitem__)
        batches = np.asarray(numbers)[order].reshape(self.pool, self.size)
        # A seed beside that of the epochs: pools must not repeat the order of the pairs.
        shuffled: NDArray[np.int64] = batches[np.random.default_rng([self.seed, pool, 1]).permutation(self.pool)]
        return shuffled


class SequentialPairs(PureSource):
    """All pairs in their order, for evaluation; the last batch may have fewer rows."""

    def __init__(self, pairs: Sequence[Pair], ends: Ends, size: int) -> None:
        _check(pairs)
        self.pairs, self.ends, self.size = pairs, ends, size
        self.tokens_per_step = size * max(len(target) + 1 for _, target in pairs)
        self.rows_per_epoch = len(pairs)

    def __len__(self) -> int:
        return -(-len(self.pairs) // self.size)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        rows = self.pairs[step * self.size : (step + 1) * self.size]
        if step < 0 or not rows:
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        return pair_batch(rows, self.ends)


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
