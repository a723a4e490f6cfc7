"""Several corpora in one run: which corpus each row of each batch comes from, exactly by weight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from orrery.data.batches.token_windows import IGNORE, DividedBatches
from orrery.errors import UsageError

BLOCK = 1000
"""Draws after which the counts are right again, unless a weight is so small that it needs more."""

LEAST = Fraction(1, 1_000_000)
"""The smallest share of a corpus: the order of a block is in memory, and a block holds each corpus at least once."""

FILLS = {"targets": IGNORE}
"""What pads a row that is shorter than its batch; everything else is padded with 0."""


class Shares:
    """Which corpus each draw comes from, so that counts follow the weights without any drift.

    After ``b`` blocks of ``block`` draws, corpus i was drawn ``b * block * w_i / sum(w)`` times, rounded by
    the largest remainder: exactly where that is a whole number, and never one draw or more off. Within a
    block the order is drawn from (seed, block). Raises `UsageError` for a weight that is not a positive
    finite number.
    """

    def __init__(self, weights: Sequence[int | float], seed: int) -> None:
        self.shares = normalised(weights)
        # A corpus must gain at least one draw a block: else a rounding in its favour could later be taken back.
        self.block = max(BLOCK, math.ceil(1 / min(self.shares)))
        self.seed = seed
        self._order = lru_cache(maxsize=2)(self._draw)
        self._after = lru_cache(maxsize=4)(self._count)

    def counts(self, draws: int) -> NDArray[np.int64]:
        """Return how often each corpus was drawn in the first ``draws`` draws."""
        block, rest = divmod(draws, self.block)
        return self._after(block) + np.bincount(self._order(block)[:rest], minlength=len(self.shares))

    def draw(self, number: int) -> tuple[int, int]:
        """Return, for draw ``number`` from 0, its corpus and how often that corpus was drawn before."""
        block, place = divmod(number, self.block)
        order = self._order(block)
        corpus = int(order[place])
        return corpus, int(self._after(block)[corpus] + np.count_nonzero(order[:place] == corpus))

    def _count(self, blocks: int) -> NDArray[np.int64]:
        """Return how often each corpus was drawn in so many whole blocks."""
        return np.array(largest_remainder(self.shares, blocks * self.block), np.int64)

    def _draw(self, block: int) -> NDArray[np.int64]:
        """Return the corpora of one block: the right number of each, shuffled."""
        order = np.repeat(np.arange(len(self.shares)), self._after(block + 1) - self._after(block))
        return np.random.default_rng([self.seed, block, 2]).permutation(order)


@dataclass(frozen=True)
class Component:
    """One corpus of a mixture: its rows one by one (a source of batches of one), and its weight."""

    name: str
    source: DividedBatches
    weight: int | float


class MixtureBatches(DividedBatches):
    """Batches whose rows come from several corpora by weight, as a pure function of (seed, step).

    Each corpus goes through its own rows in its own order, one row each time it is drawn; when it has given
    all, it begins again in another order (crops, which are drawn from a text with replacement, have no such
    round). ``components`` are sources with one row a batch.
    """

    def __init__(self, components: Sequence[Component], size: int, seed: int) -> None:
        names = [component.name for component in components]
        if len(set(names)) != len(names):
            raise UsageError(f"a mixture names a corpus twice: {', '.join(names)}", "give each its own name")
        self.components, self.size = components, size
        self.shares = Shares([component.weight for component in components], seed)
        self.tokens_per_step = size * max(component.source.tokens_per_step for component in components)
        self.rows_per_epoch = sum(component.source.rows_per_epoch for component in components)

    def share(self, step: int, rows: range) -> dict[str, Tensor]:
        """Return the batch of ``step``: row r is draw ``step * size + r``."""
        draws = enumerate(map(self.shares.draw, range(step * self.size, (step + 1) * self.size)))
        own = {True: range(1), False: range(0)}
        return stacked([self.components[n].source.share(before, own[row in rows]) for row, (n, before) in draws])

    def epochs(self, step: int) -> dict[str, float]:
        """Return how often each corpus was gone through before ``step``."""
        counts = self.shares.counts(step * self.size)
        return {
            component.name: float(count / component.source.rows_per_epoch)
            for component, count in zip(self.components, counts, strict=True)
        }


def normalised(weights: Sequence[int | float]) -> list[Fraction]:
    """Return the weights as exact shares of their sum: 60, 22, 8, 8 and 3 become 60/101 and so on."""
    if not weights:
        raise UsageError("a mixture of no corpora", "name at least one corpus with its weight")
    for weight in weights:
        if not (math.isfinite(weight) and weight > 0):
            raise UsageError(
                f"a weight of {weight:g} in a mixture", "give each corpus a weight above 0, or leave it out"
            )
    # By way of decimals: a weight of 0.1 means one tenth, not the float beside it.
    exact = [Fraction(str(weight)) for weight in weights]
    shares = [weight / sum(exact) for weight in exact]
    if min(shares) < LEAST:
        message = f"a weight of {min(weights):g} beside others that make {float(sum(exact)):g}"
        raise UsageError(message, "give each corpus at least a millionth of the whole, or leave it out")
    return shares


def largest_remainder(shares: Sequence[Fraction], total: int) -> list[int]:
    """Divide ``total`` by shares that add to 1: each gets its quota's whole part, the largest remainders one more."""
    quotas = [share * total for share in shares]
    counts = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - quotas[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def stacked(rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return batches of one row as one batch, padded on the right to the longest row."""
    width = max(row["ids"].shape[1] for row in rows)
    return {
        name: torch.cat([pad(row[name], (0, width - row[name].shape[1]), value=FILLS.get(name, 0)) for row in rows])
        for name in rows[0]
    }
