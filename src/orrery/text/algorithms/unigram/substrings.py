"""Every substring of counted words that could be a piece, with how often it occurs and where.

Paper: Kudo 2018, section 3.2 (the seed vocabulary: the most frequent substrings, from a suffix array).

A substring is proposed where it is not always continued by one and the same character; the end of a word counts as a
continuation of its own. So whole words are proposed, which the `tokenizers` library's trainer leaves out where the
character behind them was cut away.

The suffixes are sorted by prefix doubling (Karp, Miller and Rosenberg 1972), which needs no more than the first
`LONGEST` characters here, and whole arrays at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LONGEST = 16
"""Longest piece, in characters."""

LEAST = 2
"""A longer piece occurs at least so often."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Words:
    """Counted words one behind another, longest first, each with an empty place behind its last character."""

    words: Sequence[str]
    counts: Ints

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> "Words":
        """Put the longest word first, and words of one length in code point order."""
        words = sorted(counted, key=lambda word: (-len(word), word))
        return cls(words, np.array([counted[word] for word in words], np.int64))

    @cached_property
    def lengths(self) -> Ints:
        """Characters of each word."""
        return np.fromiter(map(len, self.words), np.int64, len(self.words))

    @cached_property
    def firsts(self) -> Ints:
        """Place of the first character of each word."""
        return np.concatenate([[0], np.cumsum(self.lengths + 1)[:-1]])

    @cached_property
    def owners(self) -> NDArray[np.int32]:
        """The word of each place."""
        return np.repeat(np.arange(len(self.words), dtype=np.int32), self.lengths + 1)

    @cached_property
    def left(self) -> NDArray[np.int16]:
        """How many characters follow from each place to the end of its word; more than `LONGEST` count as that."""
        places = np.arange(len(self.owners))
        left = (self.firsts + self.lengths)[self.owners] - places
        return np.minimum(left, LONGEST).astype(np.int16)

    @cached_property
    def symbols(self) -> NDArray[np.int32]:
        """A number for each character, in code point order from 1; 0 behind a word."""
        text = np.frombuffer("\0".join([*self.words, ""]).encode("utf-32-le"), np.uint32)
        inside = self.left > 0
        numbers = np.zeros(len(text), np.int32)
        numbers[inside] = 1 + np.unique(text[inside], return_inverse=True)[1]
        return numbers

    def spell(self, place: int, length: int) -> str:
        """Return the substring at a place."""
        word = self.owners[place]
        start = place - int(self.firsts[word])
        return self.words[word][start : start + length]


@dataclass(frozen=True)
class SubstringGroup:
    """All substrings of one length that could be pieces: how often each occurs, and at which places."""

    length: int
    counts: Ints
    places: NDArray[np.int32]
    ends: Ints
    """Where the places of each substring end; they begin where those of the one before end."""


def substrings(words: Words) -> Iterator[SubstringGroup]:
    """Yield the substrings of two characters and more, by length, those of one length in code point order."""
    order, shared = _sorted(words)
    weights = words.counts[words.owners[order]]
    left = words.left[order]
    for length in range(2, LONGEST + 1):
        begins = np.flatnonzero(np.concatenate([[True], shared < length]))
        sizes = np.diff(np.append(begins, len(order)))
        counts = np.add.reduceat(weights, begins)
        inner = np.concatenate([[LONGEST], shared])
        inner[begins] = LONGEST
        branches = (np.minimum.reduceat(inner, begins) == length) | (left[begins] == length)
        chosen = branches & (left[begins] >= length) & (counts >= LEAST)
        inside = np.repeat(chosen, sizes)
        yield SubstringGroup(length, counts[chosen], order[inside], np.cumsum(sizes[chosen]))


def _sorted(words: Words) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """Return the places of all characters in the order of what follows, and what each shares with the one before."""
    ranks = [words.symbols]
    for width in _widths():
        following = np.zeros_like(ranks[-1], np.int64)
        following[:-width] = ranks[-1][width:]
        # Behind its word a suffix has nothing more; the rank of what it has already tells it apart.
        following[words.left <= width] = 0
        keys = ranks[-1].astype(np.int64) * (int(ranks[-1].max()) + 1) + following
        ranks.append(np.unique(keys, return_inverse=True)[1].astype(np.int32))
    order = np.argsort(ranks[-1], kind="stable").astype(np.int32)
    order = order[words.left[order] > 0]
    return order, _shared(words, ranks, order)


def _widths() -> list[int]:
    return [1 << step for step in range(LONGEST.bit_length() - 1)]


def _shared(words: Words, ranks: Sequence[NDArray[np.int32]], order: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return how many characters each two neighbours of the order have in common at their beginning."""
    one, other = order[:-1], order[1:]
    least = np.minimum(words.left[one], words.left[other])
    shared = np.zeros(len(one), np.int16)
    for width, rank in zip([*_widths(), LONGEST][::-1], ranks[::-1], strict=True):
        able = shared + width <= least
        first, second = np.where(able, one + shared, 0), np.where(able, other + shared, 0)
        shared += np.where(able & (rank[first] == rank[second]), width, 0).astype(np.int16)
    return shared
