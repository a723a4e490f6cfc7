"""Guides: which tokens may come next in an answer, as its text so far decides."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import UsageError
from orrery.text.tokenizer import refuse_surrogates


class Guide(ABC):
    """What watches one answer and says which tokens may follow."""

    @abstractmethod
    def allowed(self) -> Bool[Tensor, "V"] | None:
        """Return which tokens may come next; ``None`` where every one may."""

    @abstractmethod
    def push(self, token: int) -> None:
        """Take the token that was chosen."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether nothing may follow but the end of the answer."""

    def ready(self, seconds: float) -> bool:
        """Return whether ``allowed`` answers at once, after so many seconds at most; most guides always do."""
        return True


Begin = Callable[[], Guide]
"""Gives the guide of an answer that begins."""


@final
class BadWords(Guide):
    """No token may complete one of the words, however the tokens cut it.

    A token is forbidden where its bytes hold a word, or where a word has begun at the end of the answer and the token
    begins with the rest. Differs from ``bad_words_ids`` of transformers, which forbids one way of cutting a word.
    """

    def __init__(self, index: "SpellingIndex", words: Sequence[bytes], always_V: Bool[Tensor, "V"]) -> None:
        self._index, self._words, self._always_V = index, words, always_V
        self._longest = max(map(len, words)) - 1
        self._tail = b""

    def allowed(self) -> Bool[Tensor, "V"]:
        """Return which tokens complete no word."""
        hidden_V = self._always_V
        for word in self._words:
            for length in range(1, min(len(word) - 1, len(self._tail)) + 1):
                if self._tail.endswith(word[:length]):
                    hidden_V = hidden_V | self._index.beginning_with(word[length:])
        return ~hidden_V

    def push(self, token: int) -> None:
        """Remember the end of the answer, as much of it as a word can begin in."""
        self._tail = (self._tail + self._index.spellings[token])[-self._longest :] if self._longest else b""

    @property
    def over(self) -> bool:
        """Never: a word that is forbidden ends no answer."""
        return False


@final
class SpellingIndex:
    """The bytes of every token, sorted, so that those which begin with some bytes are found at once."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        self.spellings = tuple(spellings)
        self._order = sorted(range(len(spellings)), key=spellings.__getitem__)
        self._sorted = [spellings[id] for id in self._order]

    def beginning_with(self, start: bytes) -> Bool[Tensor, "V"]:
        """Return which tokens begin with these bytes."""
        first = bisect_left(self._sorted, start)
        last = first
        while last < len(self._sorted) and self._sorted[last].startswith(start):
            last += 1
        return self._mask(self._order[first:last])

    def containing(self, words: Sequence[bytes]) -> Bool[Tensor, "V"]:
        """Return which tokens hold one of these words."""
        return self._mask([id for id, own in enumerate(self.spellings) if any(word in own for word in words)])

    def _mask(self, ids: Sequence[int]) -> Bool[Tensor, "V"]:
        mask_V = torch.zeros(len(self.spellings), dtype=torch.bool)
        mask_V[torch.tensor(ids, dtype=torch.long)] = True
        return mask_V


def without(words: Sequence[str], index: SpellingIndex) -> Begin:
    """Return what begins a guide that keeps these words out; what holds one whole is looked up once for all answers.

    Raises:
        UsageError: a word is empty or no text.
        DataError: a word has half a character.
    """
    for word in words:
        if not isinstance(word, str):
            raise UsageError(f"the bad word {str(word)[:40]!r} is no text", "give words as texts")
        if not word:
            raise UsageError("an empty bad word stands everywhere", "leave it away")
        refuse_surrogates(word)
    spellings = tuple(word.encode() for word in words)
    always_V = index.containing(spellings)
    return lambda: BadWords(index, spellings, always_V)
