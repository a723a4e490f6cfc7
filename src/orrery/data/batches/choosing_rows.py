"""Which rows form the batch of a step, for rows of unequal length: by their number or by their tokens."""

from functools import lru_cache
from math import ceil
from typing import Protocol, runtime_checkable

import numpy as np

from orrery.data.batches.by_tokens import POOL, Numbers, TokenBatches
from orrery.data.batches.order import Shuffled


@runtime_checkable
class RowBatches(Protocol):
    """The rows of every step, a pure function of (seed, step)."""

    def rows(self, step: int) -> Numbers:
        """Return the numbers of the rows of the batch of ``step``, from 0."""
        ...

    def epochs(self, step: int) -> float:
        """Return how often the rows were gone through before ``step``."""
        ...

    @property
    def per_epoch(self) -> float:
        """The batches of an epoch."""
        ...


class SizedBatches:
    """Batches of ``size`` rows: every epoch visits each once, shuffled, then sorted by length within a pool.

    Args:
        lengths: [row, side]; rows are sorted by the last side first.
        size: rows of a batch.
        seed: of the run.
        pool: batches whose rows are sorted together.
    """

    def __init__(self, lengths: Numbers, size: int, seed: int, pool: int = POOL) -> None:
        self.lengths, self.size, self.seed, self.pool = lengths, size, seed, pool
        self.order = Shuffled(len(lengths), seed)
        self._pool = lru_cache(maxsize=2)(self._sorted_pool)

    def rows(self, step: int) -> Numbers:
        """Return the numbers of the rows of the batch of ``step``, of the pool it lies in."""
        numbers: Numbers = self._pool(step // self.pool)[step % self.pool]
        return numbers

    def epochs(self, step: int) -> float:
        """Return how often the rows were gone through before ``step``."""
        return step * self.size / len(self.lengths)

    @property
    def per_epoch(self) -> float:
        """The batches of an epoch; a batch may hold rows of two."""
        return len(self.lengths) / self.size

    def _sorted_pool(self, pool: int) -> Numbers:
        """Return the numbers of the rows of a pool, [batch of the pool, row]."""
        count = self.pool * self.size
        numbers = self.order.items(pool * count, (pool + 1) * count)
        batches = numbers[np.lexsort(self.lengths[numbers].T)].reshape(self.pool, self.size)
        # A seed beside that of the epochs: pools must not repeat the order of the rows.
        shuffled: Numbers = batches[np.random.default_rng([self.seed, pool, 1]).permutation(self.pool)]
        return shuffled


def row_batches(lengths: Numbers, size: int, tokens: int | None, seed: int, pool: int = POOL) -> RowBatches:
    """Return batches of so many tokens where they are given, else of so many rows."""
    return SizedBatches(lengths, size, seed, pool) if tokens is None else TokenBatches(lengths, tokens, seed, pool)


def padding_share(lengths: Numbers, batches: RowBatches) -> float:
    """Return which share of the positions of the first epoch's batches is padding, all sides together."""
    chosen = [lengths[batches.rows(step)] for step in range(ceil(batches.per_epoch))]
    total = sum(len(rows) * int(rows.max(axis=0).sum()) for rows in chosen)
    return 1 - sum(int(rows.sum()) for rows in chosen) / total
