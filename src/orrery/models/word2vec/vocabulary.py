"""The words of a corpus: counts, rare-word deletion, sub-sampling; and the corpus as ids."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError

LONGEST = 10_000
"""Words: a longer sentence is cut there, so that one file without line ends still makes chunks."""

Sentences = Iterable[Sequence[str]]


@dataclass(frozen=True)
class Vocabulary:
    """Words with their counts, the most frequent first (ties in the order of their characters)."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]

    @classmethod
    def count(cls, sentences: Sentences, min_count: int = 5) -> "Vocabulary":
        """Count words and drop those seen fewer than ``min_count`` times. Raises `DataError` if under two stay."""
        counter: Counter[str] = Counter()
        for sentence in sentences:
            counter.update(sentence)
        if not counter:
            raise DataError("the corpus is empty: it has no words", "give it sentences, each a list of words")
        kept = sorted((item for item in counter.items() if item[1] >= min_count), key=lambda item: (-item[1], item[0]))
        if len(kept) < 2:
            raise DataError(
                f"{len(kept)} of {len(counter):,} different words occur at least {min_count} times; "
                "word vectors need at least two",
                "give it more text, or lower min_count",
            )
        return cls(tuple(word for word, _ in kept), np.array([count for _, count in kept], np.int64))

    @property
    def total(self) -> int:
        """How many words of the corpus are in the vocabulary, repeated ones each time."""
        return int(self.counts.sum())

    def ids(self) -> dict[str, int]:
        """Return the number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def keep_rates(self, threshold: float) -> NDArray[np.float64]:
        r"""Return with which probability each occurrence of a word stays.

        .. math:: p(w) = \min(1, \sqrt{t / f(w)} + t / f(w))

        Differs from the paper (2013b equation 5: :math:`\sqrt{t/f}`) as its own C program does. A threshold of 0
        keeps everything.
        """
        if not threshold:
            return np.ones(len(self.words))
        ratio = threshold * self.total / self.counts
        return np.minimum(1.0, np.sqrt(ratio) + ratio)


@runtime_checkable
class TrainingText(Protocol):
    """A corpus as a training sees it: how many words, and pieces of it in order, as often as asked."""

    @property
    def words(self) -> int:
        """How many words, repeated ones each time."""

    def chunks(self, words: int) -> "Iterator[WordCorpus]":
        """Yield runs of whole sentences that have at least ``words`` words (the last may have fewer)."""


@final
@dataclass(frozen=True)
class WordCorpus:
    """Word ids in one row, and where each sentence starts (with the end of the last one)."""

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sentences, vocabulary: Vocabulary) -> "WordCorpus":
        """Number the words of a text; see `numbered`."""
        tokens, starts = array("i"), array("q", [0])
        for sentence in numbered(sentences, vocabulary):
            tokens.extend(sentence)
            starts.append(len(tokens))
        return cls(np.frombuffer(tokens, np.int32), np.frombuffer(starts, np.int64))

    @property
    def words(self) -> int:
        """How many words, repeated ones each time."""
        return len(self.tokens)

    def chunks(self, words: int) -> "Iterator[WordCorpus]":
        """Yield runs of whole sentences that have at least ``words`` words (the last may have fewer)."""
        for starts in _runs(self.starts, words):
            yield WordCorpus(self.tokens[starts[0] : starts[-1]], starts - starts[0])


@final
class StoredCorpus:
    """Word ids in a file, of which one chunk at a time is in memory: four bytes a word stay on the disk."""

    def __init__(self, file: BinaryIO, sentences: Sentences, vocabulary: Vocabulary) -> None:
        """Write the numbered words of a text into an empty file, open for both ways; see `numbered`."""
        self._file, self.words, starts = file, 0, array("q", [0])
        for sentence in numbered(sentences, vocabulary):
            file.write(array("i", sentence))
            self.words += len(sentence)
            starts.append(self.words)
        file.flush()
        self._starts = np.frombuffer(starts, np.int64)

    def chunks(self, words: int) -> Iterator[WordCorpus]:
        """Yield runs of whole sentences that have at least ``words`` words (the last may have fewer)."""
        for starts in _runs(self._starts, words):
            self._file.seek(4 * int(starts[0]))
            yield WordCorpus(np.fromfile(self._file, np.int32, int(starts[-1] - starts[0])), starts - starts[0])


def numbered(sentences: Sentences, vocabulary: Vocabulary) -> Iterator[list[int]]:
    """Yield each sentence as ids, without those that have none, and a very long one in pieces.

    Words outside the vocabulary vanish, and their neighbours become neighbours.
    """
    ids = vocabulary.ids()
    for sentence in sentences:
        known = [ids[word] for word in sentence if word in ids]
        for start in range(0, len(known), LONGEST):
            yield known[start : start + LONGEST]


def _runs(starts: NDArray[np.int64], words: int) -> Iterator[NDArray[np.int64]]:
    """Yield the starts of each run of sentences with at least ``words`` words, and the run's end."""
    first = 0
    while first < len(starts) - 1:
        last = min(int(np.searchsorted(starts, starts[first] + words)), len(starts) - 1)
        yield starts[first : last + 1]
        first = last
