"""Texts as sparse rows: TF-IDF of words (Sparck Jones 1972), each row of length one."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

DENSE = 4_000_000
"""Numbers of a matrix up to which it is kept with its zeros: that is faster than to pass over them."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class SparseRows:
    """Rows of which few columns are not zero: those of row ``i`` are ``columns[starts[i] : starts[i + 1]]``.

    Attributes:
        starts: where each row begins, and where the last one ends.
        columns: numbers of columns, rising within a row.
        values: what stands there.
        width: how many columns there are.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the columns and values of a row."""
        part = slice(self.starts[number], self.starts[number + 1])
        return self.columns[part], self.values[part]

    def times(self, matrix_VF: Float[Tensor, "V F"]) -> Float[Tensor, "N F"]:
        """Return the product with a matrix."""
        return self.tensor() @ matrix_VF

    def tensor(self) -> Tensor:
        """Return the rows as a sparse tensor of torch."""
        shape = (len(self), self.width)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")  # it is used as it is documented
            starts, columns, values = map(torch.from_numpy, (self.starts, self.columns, self.values))
            return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)

    def taken(self, numbers: NDArray[np.int64]) -> "SparseRows":
        """Return some of the rows, in the order of their numbers given."""
        counts = np.diff(self.starts)[numbers]
        starts = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
        places = np.repeat(self.starts[:-1][numbers] - starts[:-1], counts) + np.arange(starts[-1])
        return SparseRows(starts, self.columns[places], self.values[places], self.width)

    def narrowed(self) -> tuple[Tensor, NDArray[np.int64]]:
        """Return the rows as a tensor of the columns alone that one of them has, and which columns these are.

        It is dense where it has few numbers, else sparse.
        """
        kept, within = np.unique(self.columns, return_inverse=True)
        narrow = SparseRows(self.starts, within.astype(np.int64), self.values, len(kept)).tensor()
        return narrow.to_dense() if len(self) * len(kept) <= DENSE else narrow, kept

    def beside(self, more_NF: Float[Tensor, "N F"]) -> "SparseRows":
        """Return the rows with the columns of a matrix behind their own, and a column of ones at the end."""
        count, width = more_NF.shape[0], more_NF.shape[1] + 1
        numbers = np.concatenate([more_NF.float().numpy(), np.ones((count, 1), np.float32)], 1)
        starts = self.starts + width * np.arange(count + 1)
        columns, values = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.float32)
        places = (starts[1:, None] - width + np.arange(width)).ravel()
        columns[places] = np.tile(self.width + np.arange(width), count)
        values[places] = numbers.ravel()
        own = np.ones(starts[-1], bool)
        own[places] = False
        columns[own], values[own] = self.columns, self.values
        return SparseRows(starts, columns, values, self.width + width)


def sparse_rows(rows: Iterable[Mapping[int, float]], width: int) -> SparseRows:
    """Return rows that are given as values by column."""
    starts, columns, values = [0], list[int](), list[float]()
    for row in rows:
        for column in sorted(row):
            columns.append(column)
            values.append(row[column])
        starts.append(len(columns))
    return SparseRows(np.array(starts, np.int64), np.array(columns, np.int64), np.array(values, np.float32), width)


@dataclass(frozen=True)
class TfIdf:
    """``(1 + ln n) ln(N / d)`` for a word that a text has ``n`` times and ``d`` of N texts have.

    Attributes:
        numbers: the column of each word.
        weights: ``ln(N / d)`` by column.
        words: how many words in a row are one feature at most.
    """

    numbers: Mapping[str, int]
    weights: Sequence[float]
    words: int = 1

    @classmethod
    def learned(cls, texts: Sequence[str], most: int = 20_000, least: int = 1, words: int = 1) -> "TfIdf":
        """Return the features that ``least`` texts have or more; of more than ``most`` the most frequent."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(set(features_of(text, words)))
        kept = sorted((word for word, count in counts.items() if count >= least), key=lambda w: (-counts[w], w))[:most]
        numbers = {word: number for number, word in enumerate(sorted(kept))}
        return cls(numbers, [math.log(len(texts) / counts[word]) for word in numbers], words)

    def rows(self, texts: Iterable[str]) -> SparseRows:
        """Return the row of each text; words that were never seen are left out."""
        return sparse_rows(map(self._row, texts), len(self.numbers))

    def _row(self, text: str) -> dict[int, float]:
        counts = Counter(self.numbers[word] for word in features_of(text, self.words) if word in self.numbers)
        row = {column: (1 + math.log(count)) * self.weights[column] for column, count in counts.items()}
        length = math.sqrt(sum(value * value for value in row.values())) or 1.0
        return {column: value / length for column, value in row.items()}


def features_of(text: str, words: int) -> list[str]:
    """Return the words of a text in small letters, and its sequences of up to so many."""
    singles = _WORD.findall(text.lower())
    return [" ".join(singles[n : n + size]) for size in range(1, words + 1) for n in range(len(singles) - size + 1)]
