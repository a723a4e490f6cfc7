"""The noise of negative sampling: words by their count to the power 0.75, drawn in constant time."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError

COLUMN = 1 << 32


class NoiseTable:
    r"""The distribution :math:`p(w) \propto c(w)^{0.75}` (Mikolov et al. 2013b, section 2.2) as an alias table.

    Each of the V columns has the same probability and holds at most two words: its own below ``limits`` (in
    units of 2^-32 of a column) and ``others`` above (Walker 1977, Vose 1991). Differs from the C program: its
    table of 10^8 places rounds the probabilities, this one has them to 2^-32 in a thousandth of the memory.
    """

    def __init__(self, counts: NDArray[np.int64], power: float = 0.75) -> None:
        weights = counts.astype(np.float64) ** power
        self.probabilities = weights / weights.sum()
        heights = self.probabilities * len(counts)
        self.others = np.arange(len(counts), dtype=np.int32)
        low = [int(k) for k in np.flatnonzero(heights < 1)]
        high = [int(k) for k in np.flatnonzero(heights >= 1)]
        while low and high:
            short, tall = low.pop(), high[-1]
            self.others[short] = tall
            heights[tall] -= 1 - heights[short]
            if heights[tall] < 1:
                low.append(high.pop())
        self.limits = np.minimum(heights * COLUMN, COLUMN - 1).astype(np.uint32)

    def draw(self, count: int, rng: np.random.Generator, avoid: Collection[int] = ()) -> list[int]:
        """Return ``count`` word ids, none of them in ``avoid``, by rejection: what the demonstration shows.

        Raises:
            DataError: every word is to be avoided.
        """
        if len(set(avoid)) >= len(self.limits):
            raise DataError("no word is left to be a negative", "give it a text with more different words")
        drawn: list[int] = []
        while len(drawn) < count:
            column = int(rng.integers(len(self.limits)))
            word = column if rng.integers(COLUMN) < self.limits[column] else int(self.others[column])
            if word not in avoid:
                drawn.append(word)
        return drawn
