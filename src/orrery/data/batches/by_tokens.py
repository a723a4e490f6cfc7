"""Rows of unequal length in batches of so many positions: short rows come many at once, long ones few."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.data.batches.order import Shuffled
from orrery.errors import UsageError

Numbers = NDArray[np.int64]
"""Numbers of rows."""

POOL = 64
"""About how many batches' rows are sorted together: more gives less padding, fewer a more random order."""


def cut(lengths: Numbers, tokens: int) -> Iterator[slice]:
    """Yield slices of consecutive rows, each as long as ``rows * longest`` is at most ``tokens`` on every side.

    Args:
        lengths: [row, side]: of a pair the source and the target, of one text a single side.
        tokens: positions of a batch on each side, padding among them.

    Raises:
        UsageError: a row alone is longer.
    """
    longest = lengths.max(initial=0)
    if longest > tokens:
        message = f"a row of {longest:,} tokens does not fit into a batch of {tokens:,}"
        raise UsageError(message, f"raise batches.tokens to {longest:,} at least, or lower batches.length")
    start = 0
    while start < len(lengths):
        most = tokens // max(1, int(lengths[start].max()))
        growing = np.maximum.accumulate(lengths[start : start + most], axis=0).max(axis=1)
        fits = growing * np.arange(1, len(growing) + 1) <= tokens
        stop = start + (len(fits) if fits.all() else int(fits.argmin()))
        yield slice(start, stop)
        start = stop


class TokenBatches:
    """Every epoch visits each row once, in batches of at most ``tokens`` positions a side and rows of like length.

    An epoch's rows are shuffled, sorted within pools of about ``POOL`` batches, and cut; then the batches are shuffled.
    All of it follows from (seed, epoch). Epochs differ in their number of batches: where a step lies is found by
    counting those of the epochs before it, once.

    Args:
        lengths: [row, side]; rows are sorted by the last side first.
        tokens: positions of a batch on each side, padding among them.
        seed: of the run.
        pool: batches whose rows are sorted together.
    """

    def __init__(self, lengths: Numbers, tokens: int, seed: int, pool: int = POOL) -> None:
        self.lengths, self.tokens, self.seed = lengths, tokens, seed
        self.pool = max(1, round(pool * tokens / max(1.0, float(lengths.max(axis=1).mean()))))
        self.order = Shuffled(len(lengths), seed)
        self.ends = [len(self._draw(0))]
        self._epoch = lru_cache(maxsize=2)(self._draw)

    def rows(self, step: int) -> Numbers:
        """Return the numbers of the rows of the batch of ``step``, from 0."""
        epoch, place = self._place(step)
        return self._epoch(epoch)[place]

    def epochs(self, step: int) -> float:
        """Return how often the rows were gone through before ``step``."""
        epoch, place = self._place(step)
        return epoch + sum(map(len, self._epoch(epoch)[:place])) / len(self.lengths)

    @property
    def per_epoch(self) -> float:
        """The batches of the first epoch."""
        return float(self.ends[0])

    def _place(self, step: int) -> tuple[int, int]:
        """Return the epoch of a step and its batch within."""
        while self.ends[-1] <= step:
            self.ends.append(self.ends[-1] + len(self._epoch(len(self.ends))))
        epoch = bisect_right(self.ends, step)
        return epoch, step - (self.ends[epoch - 1] if epoch else 0)

    def _draw(self, epoch: int) -> list[Numbers]:
        """Return the batches of an epoch."""
        count = len(self.lengths)
        numbers = self.order.items(epoch * count, (epoch + 1) * count)
        pools = (numbers[start : start + self.pool] for start in range(0, count, self.pool))
        sorted_pools = [pool[np.lexsort(self.lengths[pool].T)] for pool in pools]
        batches = [pool[piece] for pool in sorted_pools for piece in cut(self.lengths[pool], self.tokens)]
        # A seed beside that of the order of rows: batches must not be shuffled as the rows are.
        return [batches[place] for place in np.random.default_rng([self.seed, epoch, 1]).permutation(len(batches))]
