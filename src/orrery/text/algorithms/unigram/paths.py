r"""All ways to cut words into pieces at once: what each piece is expected to occur, and the best way.

Papers: Kudo 2018, section 3.2; Rabiner 1989 (forward and backward sums); Viterbi 1967.

    \alpha(e) = \log \sum_{piece: s \to e} \exp(\alpha(s) + \log p(piece))

A word of n characters has n + 1 places, and a piece is an edge between two of them. The places are numbered level by
level: the beginnings of all words, then what is one character behind a beginning, and so on. So each level is one
operation over arrays, always in the same order: the same words give the same digits, whatever runs beside.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Chooser = Callable[[Floats, Ints, Floats], tuple[Floats, Floats]]
"""From the logarithms of the edges of a level, the first edge of each place and the best of each place: shares of the
edges, and the logarithm that each place then has."""


@dataclass(frozen=True)
class Edges:
    """Some edges: the word and the place in it where each begins, how long it is and which piece."""

    words: NDArray[np.int32]
    offsets: NDArray[np.int16]
    length: int
    pieces: NDArray[np.int32]


@dataclass(frozen=True)
class Paths:
    """The edges in the order of the places where they end; of those at one place the shortest first."""

    bounds: Ints
    """The first place of each level, and the number of places; place k of a level belongs to word k."""

    lasts: Ints
    """The place behind the last character of each word."""

    firsts: Ints
    """The first edge of each place, and the number of edges; the first level has none."""

    starts: NDArray[np.int32]
    """The place where each edge begins."""

    pieces: NDArray[np.int32]
    """The piece of each edge."""

    @classmethod
    def of(cls, lengths: Ints, groups: Sequence[Edges]) -> "Paths":
        """Order the edges of words whose lengths descend; ``groups`` ascend in length and repeat no edge."""
        places_of_level = [len(lengths), *np.cumsum(np.bincount(lengths)[::-1])[::-1][1:].tolist()]
        bounds = np.concatenate([[0], np.cumsum(places_of_level)])
        ends = [bounds[edges.offsets.astype(np.int64) + edges.length] + edges.words for edges in groups]
        filled = np.zeros(bounds[-1], np.int64)
        for of_length in ends:
            filled[of_length] += 1
        firsts = np.concatenate([[0], np.cumsum(filled)])
        starts, pieces = np.empty(firsts[-1], np.int32), np.empty(firsts[-1], np.int32)
        free = firsts[:-1].copy()
        for edges, of_length in zip(groups, ends, strict=True):
            places = free[of_length]
            free[of_length] += 1
            starts[places] = bounds[edges.offsets] + edges.words
            pieces[places] = edges.pieces
        return cls(bounds, bounds[lengths] + np.arange(len(lengths)), firsts, starts, pieces)

    def expected(self, scores: Floats, counts: Floats) -> tuple[Floats, float]:
        """Return how often each piece is expected in words that occur ``counts`` times, and their log likelihood."""
        shares, totals = self._forward(scores, _all)
        return self._per_piece(self._backward(shares, counts), len(scores)), float(totals[self.lasts] @ counts)

    def best(self, scores: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return for each edge how often the best ways take it, and the score of the best way of each word.

        Of equal ways that with the longer last piece.
        """
        shares, totals = self._forward(scores, _best)
        return self._backward(shares, counts), totals[self.lasts]

    def used(self, edges: Floats, count: int) -> Floats:
        """Return how often each of ``count`` pieces is used, from how often each edge is."""
        return self._per_piece(edges, count)

    def owners(self) -> NDArray[np.int64]:
        """Return the word of each edge."""
        level = np.searchsorted(self.bounds, self.starts, side="right") - 1
        return self.starts - self.bounds[level]

    def without(self, numbers: NDArray[np.int32]) -> "Paths":
        """Return the paths of fewer pieces: ``numbers`` has the new number of each, negative where it is gone.

        Every place must keep an edge that ends there.
        """
        renumbered = numbers[self.pieces]
        kept = renumbered >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Paths(self.bounds, self.lasts, before[self.firsts], self.starts[kept], renumbered[kept])

    def _levels(self) -> Iterator[tuple[slice, slice, Ints, Ints]]:
        """Yield the places of each level, its edges, the first edge of each place, and how many each has."""
        for first, last in zip(self.bounds[1:-1].tolist(), self.bounds[2:].tolist(), strict=True):
            firsts = self.firsts[first : last + 1]
            edges = slice(int(firsts[0]), int(firsts[-1]))
            yield slice(first, last), edges, firsts[:-1] - firsts[0], np.diff(firsts)

    def _forward(self, scores: Floats, choose: Chooser) -> tuple[Floats, Floats]:
        """Return the share of each edge among those that end where it ends, and the logarithm of each place."""
        totals, shares = np.zeros(self.bounds[-1]), np.empty(len(self.starts))
        for places, edges, firsts, sizes in self._levels():
            ways = totals[self.starts[edges]] + scores[self.pieces[edges]]
            most = np.maximum.reduceat(ways, firsts)
            shares[edges], totals[places] = choose(ways, firsts, np.repeat(most, sizes))
        return shares, totals

    def _backward(self, shares: Floats, counts: Floats) -> Floats:
        """Return how often each edge is taken: its share of how often the place where it ends is passed."""
        passed = np.zeros(self.bounds[-1])
        passed[self.lasts] = counts
        for places, edges, _, sizes in reversed(list(self._levels())):
            shares[edges] *= np.repeat(passed[places], sizes)
            earliest = int(self.starts[edges].min())
            back = np.bincount(self.starts[edges] - earliest, shares[edges], places.start - earliest)
            passed[earliest : places.start] += back
        return shares

    def _per_piece(self, edges: Floats, count: int) -> Floats:
        return np.asarray(np.bincount(self.pieces, edges, count), float)


def _all(ways: Floats, firsts: Ints, most: Floats) -> tuple[Floats, Floats]:
    """Share a place among all its edges, by their probability."""
    parts = np.exp(ways - most)
    sums = np.add.reduceat(parts, firsts)
    sizes = np.diff(np.append(firsts, len(ways)))
    return parts / np.repeat(sums, sizes), most[firsts] + np.log(sums)


def _best(ways: Floats, firsts: Ints, most: Floats) -> tuple[Floats, Floats]:
    """Give a place to its best edge, of equals the last."""
    equal = np.flatnonzero(ways == most)
    last = equal[np.searchsorted(equal, np.append(firsts[1:], len(ways))) - 1]
    shares = np.zeros(len(ways))
    shares[last] = 1.0
    return shares, most[firsts]
