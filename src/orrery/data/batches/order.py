"""An endless shuffled order that can be asked at any place, so that a resume needs no saved state."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


class Shuffled:
    """Every epoch visits each of ``count`` items once, in an order drawn from (seed, epoch).

    Only the order of two epochs is ever in memory, eight bytes an item.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.count = count
        self.seed = seed
        self._epoch = lru_cache(maxsize=2)(self._draw)

    def items(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the items at places ``start`` to ``stop`` of the endless order."""
        places = np.arange(start, stop)
        items = np.empty(len(places), np.int64)
        for epoch in np.unique(places // self.count):
            here = places // self.count == epoch
            items[here] = self._epoch(int(epoch))[places[here] % self.count]
        return items

    def _draw(self, epoch: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, epoch]).permutation(self.count)
