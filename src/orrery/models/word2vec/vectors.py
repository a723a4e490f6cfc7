"""Words with their vectors: similarity, neighbours, analogies, a map in two dimensions."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError


@final
class Vectors:
    """A row for every word; the classifier that made them is gone."""

    def __init__(self, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
        if len(words) != len(matrix) or matrix.ndim != 2:
            raise DataError(f"{len(words)} words, a matrix of shape {matrix.shape}", "give one row for each word")
        self.words, self.matrix = tuple(words), matrix
        self.ids = {word: number for number, word in enumerate(self.words)}

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        return np.asarray(self.matrix[self.id(word)])

    def __contains__(self, word: str) -> bool:
        return word in self.ids

    def id(self, word: str) -> int:
        """Return the row of a word. Raises `DataError` for a word that has none."""
        if word not in self.ids:
            raise DataError(f"{word!r} has no vector", "it was too rare, or is spelt otherwise (case counts)")
        return self.ids[word]

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """Every row divided by its length; a row of zeros stays zero."""
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        return np.asarray(self.matrix / np.where(lengths == 0, 1, lengths), np.float32)

    def similarity(self, one: str, other: str) -> float:
        r"""Return the cosine :math:`\frac{v \cdot w}{|v||w|}` of two words."""
        return float(self.unit[self.id(one)] @ self.unit[self.id(other)])

    def neighbours(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """Return the ``count`` words with the largest cosine to ``word``, without itself."""
        return self._nearest(self.unit[self.id(word)], {self.id(word)}, count)

    def analogy(self, a: str, b: str, c: str, count: int = 1) -> list[tuple[str, float]]:
        r"""Return the answers to "a is to b as c is to ...".

        .. math:: \arg\max_{w \notin \{a, b, c\}} \cos(w, \hat b - \hat a + \hat c)

        with vectors of length one (3CosAdd; Mikolov et al. 2013c, Levy and Goldberg 2014).
        """
        ids = [self.id(word) for word in (a, b, c)]
        query = self.unit[ids[1]] - self.unit[ids[0]] + self.unit[ids[2]]
        return self._nearest(query / max(float(np.linalg.norm(query)), 1e-12), set(ids), count)

    def map2d(self, words: Iterable[str]) -> NDArray[np.float64]:
        """Return a point for each word: the two directions of largest variance (principal components).

        The sign of each direction is settled: the coordinate of largest size is positive.
        """
        rows = self.matrix[[self.id(word) for word in words]].astype(np.float64)
        if min(rows.shape) < 2:
            raise DataError(f"a map of {len(rows)} words in {rows.shape[1]} dimensions", "give at least two of each")
        _, _, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
        points = (rows - rows.mean(0)) @ directions[:2].T
        largest = points[np.abs(points).argmax(0), [0, 1]]
        return np.asarray(points * np.where(largest < 0, -1, 1))

    def initialise(self, table: NDArray[np.float32], words: Sequence[str]) -> int:
        """Copy the vector of each known word into its row of ``table``; return how many were known."""
        if table.shape != (len(words), self.matrix.shape[1]):
            raise DataError(
                f"an embedding of shape {table.shape} for {len(words)} words of width {self.matrix.shape[1]}",
                "give the model the width of the vectors",
            )
        known = [(row, self.ids[word]) for row, word in enumerate(words) if word in self.ids]
        for row, number in known:
            table[row] = self.matrix[number]
        return len(known)

    def _nearest(self, direction: NDArray[np.float32], without: set[int], count: int) -> list[tuple[str, float]]:
        cosines = self.unit @ direction
        order = np.argsort(-cosines, kind="stable")[: count + len(without)]
        return [(self.words[k], float(cosines[k])) for k in order if int(k) not in without][:count]
