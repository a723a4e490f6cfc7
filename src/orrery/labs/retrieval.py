"""Does a search for "Seattle motel" find "Seattle hotel"? By one-hot vectors no, by dense vectors yes."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orrery.errors import RunError
from orrery.reports.figures import heat_map
from orrery.text.onehot import Vectors, one_hot, relevance, similarities

QUERY = "Seattle motel"
DOCUMENTS = ("Seattle hotel", "Seattle rain", "Seattle parking")
SOUGHT = DOCUMENTS[0]
WIDTH = 8

# Few words, so that the reason can be read: motel and hotel keep the same company, rain and parking another.
CORPUS = """
we slept in a cheap motel near Seattle
they slept in a cheap hotel near Boston
they booked a clean hotel for the night
we booked a quiet motel for the night
the large hotel has a free parking lot
the motel has a small parking lot
every hotel in Seattle was full
every motel in Boston was full
heavy rain fell over Seattle
cold rain fell over Boston all day
free parking in Seattle is rare
we drove from Boston to Seattle in the rain
""".strip().split("\n")


@dataclass(frozen=True)
class Finding:
    """The relevance of each document by each kind of vector, and a picture of the dense similarities."""

    one_hot: dict[str, float]
    dense: dict[str, float]
    figure: str

    def check(self) -> None:
        """Raise `RunError` unless one-hot cannot tell the document sought from rain, and dense puts it first."""
        by_chance = self.one_hot["Seattle rain"] == self.one_hot[SOUGHT]
        found = max(self.dense, key=self.dense.__getitem__) == SOUGHT
        if not by_chance or not found:
            raise RunError(f"one-hot {self.one_hot}, dense {self.dense}", "the vectors are not what the lab says")


def run() -> Finding:
    """Return the finding, checked."""
    words = sorted({word for line in CORPUS for word in line.split()})
    ids = {word: id for id, word in enumerate(words)}
    unit, dense = one_hot(list(ids.values()), len(ids)), dense_vectors(ids)

    def rank(vectors: Vectors) -> dict[str, float]:
        query = vectors[[ids[word] for word in QUERY.split()]]
        return {text: relevance(query, vectors[[ids[word] for word in text.split()]]) for text in DOCUMENTS}

    shown = sorted({word for text in (QUERY, *DOCUMENTS) for word in text.split()})
    rows = dense[[ids[word] for word in shown]]
    cosines = np.abs(similarities(rows, rows)).tolist()
    figure = heat_map(cosines, rows=shown, columns=shown, title="Size of the cosine of dense vectors", highest=1.0)
    finding = Finding(rank(unit), rank(dense), figure)
    finding.check()
    return finding


def dense_vectors(ids: dict[str, int]) -> Vectors:
    """Return a short vector a word: counts of its two neighbours, reduced by singular values (LSA).

    Paper: Deerwester et al. 1990.
    """
    counts: Counter[tuple[int, int]] = Counter()
    for line in CORPUS:
        for left, right in pairwise(line.split()):
            counts[ids[left], ids[right]] += 1
    before = np.zeros((len(ids), len(ids)))
    for place, count in counts.items():
        before[place] = np.log1p(count)
    # What stands after a word and what stands before it are told apart.
    u, s, _ = np.linalg.svd(np.concatenate([before, before.T], axis=1), full_matrices=False)
    return u[:, :WIDTH] * s[:WIDTH]
