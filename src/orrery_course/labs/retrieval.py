"""Does a search for "Seattle motel" find "Seattle hotel"?

By one-hot vectors it does not: two different words are never alike. By dense vectors it does, since the words around a
motel are those around a hotel.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from orrery.reports.figures import heat_map
from orrery_course.labs._lab import Numbers
from orrery_course.tables.onehot import Vectors, one_hot, relevance, similarities

QUERY = "Seattle motel"
DOCUMENTS = ("Seattle hotel", "Seattle rain", "Seattle parking")
SOUGHT = DOCUMENTS[0]
WIDTH = 8

# Few words, so that the reason can be read: motel and hotel stand among the same words, rain and parking do not.
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


def run(seed: int, quick: bool = False) -> Numbers:
    """Return the relevance of each document by each kind of vector; the seed leaves one sentence out."""
    corpus = [line for place, line in enumerate(CORPUS) if place != np.random.default_rng(seed).integers(len(CORPUS))]
    words = sorted({word for line in (*CORPUS, QUERY, *DOCUMENTS) for word in line.split()})
    ids = {word: id for id, word in enumerate(words)}
    unit, dense = one_hot(list(ids.values()), len(ids)), dense_vectors(corpus, ids)

    def rank(vectors: Vectors) -> dict[str, float]:
        query = vectors[[ids[word] for word in QUERY.split()]]
        return {text: float(relevance(query, vectors[[ids[word] for word in text.split()]])) for text in DOCUMENTS}

    shown = sorted({word for text in (QUERY, *DOCUMENTS) for word in text.split()})
    rows = dense[[ids[word] for word in shown]]
    sizes = np.abs(similarities(rows, rows))
    cosines = {f"{shown[i]} and {shown[j]}": float(sizes[i, j]) for i, j in combinations(range(len(shown)), 2)}
    return {"one-hot": rank(unit), "dense": rank(dense), "cosines": cosines}


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold both answers: one-hot vectors find no document more relevant, dense ones the hotel by 0.1 at least."""
    unit, dense = numbers["one-hot"], numbers["dense"]
    others = [dense[text] for text in DOCUMENTS if text != SOUGHT]
    return {
        "by one-hot vectors all documents are equally relevant": min(unit.values()) - max(unit.values()),
        "by dense vectors the hotel comes first": dense[SOUGHT] - max(others) - 0.1,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw how alike the words are by the dense vectors of the first seed."""
    cosines = runs[0]["cosines"]
    names = sorted({word for pair in cosines for word in pair.split(" and ")})
    rows = [[1.0 if a == b else cosines[" and ".join(sorted((a, b)))] for b in names] for a in names]
    return heat_map(rows, rows=names, columns=names, title="Size of the cosine of dense vectors", highest=1.0)


def dense_vectors(corpus: Sequence[str], ids: Mapping[str, int]) -> Vectors:
    """Return a short vector a word: counts of its two neighbours, reduced by singular values (LSA).

    Paper: Deerwester et al. 1990.
    """
    counts: Counter[tuple[int, int]] = Counter()
    for line in corpus:
        for left, right in pairwise(line.split()):
            counts[ids[left], ids[right]] += 1
    before = np.zeros((len(ids), len(ids)))
    for place, count in counts.items():
        before[place] = np.log1p(count)
    # What stands after a word and what stands before it are told apart.
    u, s, _ = np.linalg.svd(np.concatenate([before, before.T], axis=1), full_matrices=False)
    return u[:, :WIDTH] * s[:WIDTH]
