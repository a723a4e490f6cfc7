r"""One-hot vectors, and how well a document answers a query when words are vectors.

A word is the row of the unit matrix at its id: as long as the vocabulary, and at a right angle to every other word.
Times a table E it selects a row, which is all that an embedding does: onehot(id) E = E[id].
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError, UsageError

Vectors = NDArray[np.float64]
"""One row a word."""


def one_hot(ids: Sequence[int], vocabulary: int) -> Vectors:
    """Return a row a word: 1 at its id, 0 elsewhere. Raises `DataError` for an id outside the vocabulary."""
    for id in ids:
        if not 0 <= id < vocabulary:
            raise DataError(f"word id {id} is outside the vocabulary of {vocabulary:,}", "ids count from 0")
    vectors = np.zeros((len(ids), vocabulary))
    vectors[np.arange(len(ids)), np.array(ids, dtype=np.int64)] = 1.0
    return vectors


def similarities(query: Vectors, document: Vectors) -> Vectors:
    """Return the cosine of each query word (row) and document word (column); a zero vector is like nothing."""
    return _unit(query) @ _unit(document).T


def relevance(query: Vectors, document: Vectors) -> float:
    """Return how well each query word is matched by the document's word most like it, on average.

    Raises:
        UsageError: a query or a document without words.
    """
    if not len(query) or not len(document):
        raise UsageError("a query and a document need one word at least", "leave empty ones away")
    return float(similarities(query, document).max(axis=1).mean())


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
