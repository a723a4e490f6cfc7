"""n-gram models with interpolated Witten-Bell smoothing: the floor that a neural model has to beat."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.errors import DataError

Ids = NDArray[np.int64]


class TokenNgram:
    r"""An n-gram model over token ids.

    .. math:: p(w|h) = \frac{c(hw) + T(h)\,p(w|h')}{c(h) + T(h)}

    where T(h) is the number of different tokens seen after the context h, and h' is h without its oldest
    token. The empty context falls back to the uniform distribution, an unseen context to the shorter one.
    Sums to 1 over w.

    Papers: Bell, Cleary and Witten 1990; Chen and Goodman 1998, section 2.4.
    """

    def __init__(self, order: int, vocabulary: int) -> None:
        self.order = order
        self.vocabulary = vocabulary
        self._levels: list[_Level] = []

    def fit(self, ids: ArrayLike) -> "TokenNgram":
        """Count every n-gram of 1 to ``order`` tokens; return the model itself."""
        tokens = self._tokens(ids)
        contexts = np.zeros(len(tokens), np.int64)
        self._levels = []
        for length in range(self.order):
            keys = contexts[length:] * self.vocabulary + tokens[length:]
            grams, numbers = np.unique(keys, return_inverse=True)
            self._levels.append(_Level.count(grams, numbers, self.vocabulary))
            # The n-gram that ends at one place is the context of the next place.
            contexts = np.concatenate([np.zeros(length + 1, np.int64), numbers[:-1]])
        return self

    def probabilities(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each token given those before it, in one pass over all places."""
        tokens = self._tokens(ids)
        result = np.full(len(tokens), 1.0 / self.vocabulary)
        contexts = np.zeros(len(tokens), np.int64)
        for length, level in enumerate(self._levels):
            contexts[:length] = UNSEEN
            places = level.find(contexts, tokens, self.vocabulary)
            result = level.interpolate(result, contexts, places)
            contexts = np.concatenate([[UNSEEN], places[:-1]])
        return result

    def nats(self, ids: ArrayLike) -> float:
        """Return the mean negative log probability of a token, in nats."""
        return float(-np.log(self.probabilities(ids)).mean())

    def shortened(self, order: int) -> "TokenNgram":
        """Return the model of the first ``order`` lengths: what fitting it again would give."""
        shorter = TokenNgram(min(order, self.order), self.vocabulary)
        shorter._levels = self._levels[:order]
        return shorter

    @property
    def grams(self) -> int:
        """The number of different n-grams that were counted, of all lengths."""
        return sum(len(level.grams) for level in self._levels)

    @property
    def bytes(self) -> int:
        """The memory of the counts."""
        arrays = [(level.grams, level.counts, level.totals, level.kinds) for level in self._levels]
        return sum(array.nbytes for level in arrays for array in level)

    def _tokens(self, ids: ArrayLike) -> Ids:
        tokens = np.asarray(ids).astype(np.int64)
        if not len(tokens):
            raise DataError("an n-gram model needs at least one token, got 0", "give it a text that is not empty")
        if tokens.min() < 0 or tokens.max() >= self.vocabulary:
            raise DataError(f"token ids outside the vocabulary of {self.vocabulary:,}", "check the tokenizer")
        return tokens


class ByteNgram:
    """An n-gram model over the bytes of UTF-8 text: `TokenNgram` with a vocabulary of 256."""

    def __init__(self, order: int) -> None:
        self._model = TokenNgram(order, vocabulary=256)

    def fit(self, content: bytes) -> "ByteNgram":
        """Count the n-grams of ``content``; return the model itself."""
        self._model.fit(np.frombuffer(content, np.uint8))
        return self

    def bits_per_byte(self, content: bytes) -> float:
        """Return the mean negative log probability of a byte of ``content``, in bits."""
        return self._model.nats(np.frombuffer(content, np.uint8)) / math.log(2)


UNSEEN = -1


class _Level:
    """The counts of one n-gram length: which n-grams, how often, and what followed each context."""

    def __init__(self, grams: Ids, counts: Ids, totals: Ids, kinds: Ids) -> None:
        self.grams, self.counts, self.totals, self.kinds = grams, counts, totals, kinds

    @classmethod
    def count(cls, grams: Ids, numbers: Ids, vocabulary: int) -> "_Level":
        counts = np.bincount(numbers, minlength=len(grams))
        contexts = grams // vocabulary
        return cls(grams, counts, np.bincount(contexts, counts).astype(np.int64), np.bincount(contexts))

    def find(self, contexts: Ids, tokens: Ids, vocabulary: int) -> Ids:
        """Return the number of each n-gram, or UNSEEN."""
        keys = np.where(contexts == UNSEEN, UNSEEN, contexts * vocabulary + tokens)
        places = np.searchsorted(self.grams, keys).clip(max=len(self.grams) - 1)
        return np.where(self.grams[places] == keys, places, UNSEEN)

    def interpolate(self, shorter: NDArray[np.float64], contexts: Ids, indices: Ids) -> NDArray[np.float64]:
        # A context that only ends the training text was never continued: it has no kinds, like an unseen one.
        known = (contexts != UNSEEN) & (contexts < len(self.totals))
        places = np.where(known, contexts, 0)
        totals, kinds = self.totals[places] * known, self.kinds[places] * known
        counts = np.where(indices == UNSEEN, 0, self.counts[indices])
        weight: NDArray[Any] = np.where(totals + kinds == 0, 1, totals + kinds)
        return np.where(totals + kinds == 0, shorter, (counts + kinds * shorter) / weight)
