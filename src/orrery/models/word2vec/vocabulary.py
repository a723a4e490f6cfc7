"""The words of a corpus: counts, rare-word deletion, sub-sampling; and the corpus as ids."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Corpus:
    """Word ids in one row, and where each sentence starts (with the end of the last one)."""

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sentences, vocabulary: Vocabulary) -> "Corpus":
        """Number the words; those outside the vocabulary vanish, and their neighbours become neighbours."""
        ids = vocabulary.ids()
        tokens, starts = array("i"), array("q", [0])
        for sentence in sentences:
            tokens.extend(ids[word] for word in sentence if word in ids)
            while len(tokens) - starts[-1] > LONGEST:
                starts.append(starts[-1] + LONGEST)
            if len(tokens) > starts[-1]:
                starts.append(len(tokens))
        return cls(np.frombuffer(tokens, np.int32), np.frombuffer(starts, np.int64))

    def chunks(self, words: int) -> Iterator["Corpus"]:
        """Yield runs of whole sentences that have at least ``words`` words (the last may have fewer)."""
        first = 0
        while first < len(self.starts) - 1:
            last = int(np.searchsorted(self.starts, self.starts[first] + words))
            last = min(last, len(self.starts) - 1)
            begin, end = self.starts[first], self.starts[last]
            yield Corpus(self.tokens[begin:end], self.starts[first : last + 1] - begin)
            first = last
