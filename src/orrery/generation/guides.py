"""Guides: which tokens may come next in an answer, as its text so far decides."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import UsageError


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


Begin = Callable[[], Guide]
"""Gives the guide of an answer that begins."""


@final
class BadWords(Guide):
    """No token may complete one of the words, however the tokens cut it.

    A token is forbidden where its bytes hold a word, or where a word has begun at the end of the answer and the token
    begins with the rest. Differs from ``bad_words_ids`` of transformers, which forbids one way of cutting a word.
    """

    def __init__(self, index: "SpellingIndex", words: Sequence[bytes]) -> None:
        self._index, self._words = index, tuple(words)
        self._always = index.containing(self._words)
        self._tail = b""

    def allowed(self) -> Bool[Tensor, "V"]:
        """Return which tokens complete no word."""
        hidden = self._always
        for word in self._words:
            for length in range(1, min(len(word) - 1, len(self._tail)) + 1):
                if self._tail.endswith(word[:length]):
                    hidden = hidden | self._index.beginning_with(word[length:])
        return ~hidden

    def push(self, token: int) -> None:
        """Remember the end of the answer, as much of it as a word can begin in."""
        longest = max(map(len, self._words)) - 1
        self._tail = (self._tail + self._index.spellings[token])[-longest:] if longest else b""

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
        found = torch.zeros(len(self.spellings), dtype=torch.bool)
        found[torch.tensor(ids, dtype=torch.long)] = True
        return found


def without(words: Sequence[str], spellings: Sequence[bytes]) -> Begin:
    """Return what begins a guide that keeps these words out.

    Raises:
        UsageError: a word is empty.
    """
    if "" in words:
        raise UsageError("an empty bad word stands everywhere", "leave it away")
    index, found = SpellingIndex(spellings), tuple(word.encode() for word in words)
    return lambda: BadWords(index, found)
