"""Floors of recommendation: popularity, items taken together, and what follows what, all by counting."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.scores.ranks import gain, ranks_of

Ids = Sequence[int]
Floats = NDArray[np.float64]
Table = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Where the rows of each item begin [V + 1], what follows it, and how often."""
GAPS = 5
RECENT = 20
"""Of a history so many of the newest items are looked up."""
DECAYS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1)
BACKED = 1e-6
"""What popularity weighs where nothing else is known: it orders items that would have the same score."""
CHOSEN_ON = 2_000
"""Histories on which a decay is chosen."""


class Counted(ABC):
    """A score of every item for a history, from counts alone."""

    @abstractmethod
    def scores(self, history: Ids) -> Floats:
        """Return the score of each item, [V]; larger is better."""


class Popularity(Counted):
    """How often each item was taken, ``counts`` [V]."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts

    @classmethod
    def counted(cls, histories: Sequence[Ids], size: int) -> "Popularity":
        """Return what histories say."""
        return cls(np.bincount(np.concatenate([np.asarray(each, np.int64) for each in histories]), minlength=size))

    def scores(self, history: Ids) -> Floats:
        """Return the counts, whatever the history."""
        return self.counts.astype(np.float64)

    @property
    def backing(self) -> Floats:
        """The share of each item, to stand behind another score."""
        return BACKED * self.counts / max(1, self.counts.sum())


class ItemNeighbours(Counted):
    r"""``s(j) = sum_k d^k cos(i_k, j)``, i_k the k-th newest item: item-kNN (Deshpande and Karypis 2004) with recency.

    The cosine is that of the users who took both: :math:`n_{ij} / \sqrt{n_i n_j}`. All neighbours count.
    """

    def __init__(self, histories: Sequence[Ids], size: int, decay: float) -> None:
        self.taken = [np.unique(np.asarray(each, np.int64)) for each in histories]
        self.popularity, self.size, self.decay = Popularity.counted(histories, size), size, decay
        users = np.concatenate([np.full(len(each), number) for number, each in enumerate(self.taken)])
        items = np.concatenate(self.taken)
        order = np.argsort(items, kind="stable")
        self.users, self.starts = users[order], np.searchsorted(items[order], np.arange(size + 1))
        self.norms = np.sqrt(np.maximum(1, np.diff(self.starts)))
        self.rows: dict[int, Floats] = {}

    def scores(self, history: Ids) -> Floats:
        """Return the sum over the newest items."""
        found = self.popularity.backing
        for age, item in enumerate(reversed(history[-RECENT:])):
            found = found + self.decay**age * self.near(item)
        return found

    def near(self, item: int) -> Floats:
        """Return the cosine of an item with each, 0 with itself."""
        if item not in self.rows:
            own = self.users[self.starts[item] : self.starts[item + 1]]
            together = np.concatenate([self.taken[user] for user in own]) if len(own) else np.zeros(0, np.int64)
            row = np.bincount(together, minlength=self.size) / (self.norms * self.norms[item])
            row[item] = 0.0
            self.rows[item] = row
        return self.rows[item]


class MarkovGaps(Counted):
    """``s(j) = sum_g d^(g - 1) p_g(j | i_g)`` over the gaps g from 1 to 5: how often j came g places behind i_g."""

    def __init__(self, tables: Sequence[Table], popularity: Popularity, decay: float) -> None:
        self.tables, self.popularity, self.decay = tables, popularity, decay

    @classmethod
    def counted(cls, histories: Sequence[Ids], size: int, decay: float) -> "MarkovGaps":
        """Return what histories say."""
        arrays = [np.asarray(each, np.int64) for each in histories]
        tables = [cls._table(arrays, gap, size) for gap in range(1, GAPS + 1)]
        return cls(tables, Popularity.counted(histories, size), decay)

    @staticmethod
    def _table(arrays: Sequence[NDArray[np.int64]], gap: int, size: int) -> Table:
        pairs = np.concatenate([each[:-gap] * size + each[gap:] for each in arrays])
        found, counts = np.unique(pairs, return_counts=True)
        return np.searchsorted(found // size, np.arange(size + 1)), found % size, counts

    def scores(self, history: Ids) -> Floats:
        """Return the sum over the gaps."""
        found = self.popularity.backing
        for gap, (starts, items, counts) in enumerate(self.tables[: len(history)], start=1):
            item = history[-gap]
            here = slice(starts[item], starts[item + 1])
            found[items[here]] += self.decay ** (gap - 1) * counts[here] / max(1, counts[here].sum())
        return found


def candidates(items_V: NDArray[np.bool_], histories: Sequence[Ids], seen: bool) -> NDArray[np.bool_]:
    """Return which items each history ranks, [histories, V]: its own are left out unless ``seen``."""
    kept = np.repeat(items_V[None], len(histories), 0)
    if not seen:
        for number, history in enumerate(histories):
            kept[number, np.asarray(history, np.int64)] = False
    return kept


def ranks(
    method: Counted, histories: Sequence[Ids], right: Ids, items_V: NDArray[np.bool_], seen: bool, batch: int = 256
) -> Floats:
    """Return the rank of the right item of each history among all, equal scores counted half."""
    found = [np.zeros(0)]
    for start in range(0, len(histories), batch):
        some = histories[start : start + batch]
        scores = np.stack([method.scores(each) for each in some])
        found.append(ranks_of(scores, right[start : start + batch], candidates(items_V, some, seen)))
    return np.concatenate(found)


def tuned(
    make: Callable[[float], Counted], asked: Sequence[Ids], right: Ids, items_V: NDArray[np.bool_], seen: bool
) -> tuple[float, Counted]:
    """Return the decay with the best NDCG@10 on histories that are not scored on in the end, and the method with it."""
    step = max(1, len(asked) // CHOSEN_ON)
    some, wanted = asked[::step], right[::step]
    tried: Iterable[tuple[float, float, Counted]] = (
        (gain(10, ranks(method, some, wanted, items_V, seen)).score, decay, method)
        for decay in DECAYS
        for method in [make(decay)]
    )
    _, decay, method = max(tried, key=lambda each: each[0])
    return decay, method
