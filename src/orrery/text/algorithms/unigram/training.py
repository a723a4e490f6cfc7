r"""Unigram training: many seed pieces, then expectation maximisation and pruning until the vocabulary is left.

Papers: Kudo 2018, section 3.2; Liang and others 2007 (`\exp \psi` in place of counts: rare pieces become rarer).

    p(x) \propto \exp \psi(\text{expected}(x)), \qquad
    \text{loss}(x) = f(x) (\log p(x) - \log p(\text{the best way to cut } x))

Differs from SentencePiece, which does the same on words between blanks: here punctuation is cut off first, as for every
other kind, and the last scores are estimated without `\psi`, for just the vocabulary that was kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from orrery.text.algorithms.unigram.paths import Floats, Paths
from orrery.text.algorithms.unigram.seeds import cuts, propose
from orrery.text.algorithms.unigram.substrings import Words

MOST_CHARACTERS = 1 << 23
"""Characters of different words that are looked at; where there are more, the rarest words are left out."""

KEPT = 0.9
"""Share of the pieces that one pruning keeps: with 0.75, the paper's, 0.3 to 1 % more tokens in half the time."""

SPARE = 1.2
"""How many times the vocabulary the pieces are before the last cut, which goes by probability."""

ROUNDS = 2
"""Expectations between two prunings."""

LAST_ROUNDS = 4
"""Expectations over the vocabulary that was kept."""

LEAST = 0.5
"""A longer piece that is expected less often is left out; a character counts as much at least."""

DIGITS = 9


@dataclass(frozen=True)
class State:
    """The pieces, the ways to cut the words into them, and the ways to cut each longer piece into others."""

    places: NDArray[np.int64]
    lengths: NDArray[np.int64]
    weights: Floats
    words: Paths
    counts: Floats
    others: Paths
    cut: NDArray[np.int64]
    """The piece that each word of ``others`` is, or -1 where it is gone."""

    @classmethod
    def of(cls, words: Words) -> "State":
        """Return the state with all seeds."""
        seeds = propose(words)
        others, cut = cuts(words, seeds)
        paths = Paths.of(words.lengths, seeds.edges)
        return cls(seeds.places, seeds.lengths, seeds.weights, paths, words.counts.astype(float), others, cut)

    @property
    def single(self) -> NDArray[np.bool_]:
        """Which pieces are one character; they all stay."""
        return self.lengths == 1

    def expecting(self, scores: Floats) -> "State":
        """Return the pieces with how often each is expected."""
        weights, _ = self.words.expected(scores, self.counts)
        return replace(self, weights=np.where(self.single, np.maximum(weights, LEAST), weights))

    def only(self, kept: NDArray[np.bool_]) -> "State":
        """Return the state of the pieces that are kept, and of all characters."""
        kept = kept | self.single
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        small = numbers.astype(np.int32)
        return State(
            self.places[kept],
            self.lengths[kept],
            self.weights[kept],
            self.words.without(small),
            self.counts,
            self.others.without(small),
            np.where(self.cut >= 0, numbers[self.cut], -1),
        )


def learn(counted: Mapping[str, int], limit: int, never: str = "") -> dict[str, float]:
    """Return at most ``limit`` pieces with their log probabilities, every character of the words among them.

    ``never`` is no piece. The same words give the same pieces and digits in every run. Time and memory grow with
    the characters of the different words, up to `MOST_CHARACTERS`.
    """
    words = Words.of(bounded(counted, MOST_CHARACTERS))
    state = State.of(words)
    state = state.only(np.array([piece != never for piece in spelled(words, state)]))
    state = prune(state, limit)
    for _ in range(LAST_ROUNDS):
        state = state.expecting(logarithms(state.weights))
        state = replace(state, weights=np.maximum(state.weights, LEAST))
    scores = logarithms(state.weights).tolist()
    return {piece: round(score, DIGITS) for piece, score in zip(spelled(words, state), scores, strict=True)}


def prune(state: State, limit: int) -> State:
    """Return the state with the best ``limit`` pieces, all characters among them."""
    scores = logarithms(state.weights)
    while True:
        for _ in range(ROUNDS):
            state = state.expecting(scores)
            state = state.only(state.weights >= LEAST)
            scores = sparse(state.weights)
        if len(scores) <= int(SPARE * limit):
            return state.only(_greatest(np.where(state.single, np.inf, scores), limit))
        loss = np.where(state.single, np.inf, losses(state, scores))
        kept = _greatest(loss, max(int(SPARE * limit), int(KEPT * len(scores))))
        kept &= loss > -np.inf
        state, scores = state.only(kept), scores[kept]


def spelled(words: Words, state: State) -> list[str]:
    """Return the text of each piece."""
    return [words.spell(*span) for span in zip(state.places.tolist(), state.lengths.tolist(), strict=True)]


def bounded(counted: Mapping[str, int], characters: int) -> Mapping[str, int]:
    """Return the most frequent words of about so many characters, and every other character as a word.

    Which of the equally frequent ones stay is as good as random, and the same in every run.
    """
    if sum(map(len, counted)) <= characters:
        return counted
    ordered = sorted(counted, key=lambda word: (-counted[word], crc32(word.encode()), word))
    ends = np.cumsum(np.fromiter(map(len, ordered), np.int64, len(ordered)))
    kept = {word: counted[word] for word in ordered[: int(np.searchsorted(ends, characters))]}
    lost = set().union(*counted) - set().union(*kept)
    return {**dict.fromkeys(sorted(lost), 1), **kept}


def losses(state: State, scores: Floats) -> Floats:
    """Return by how much the log likelihood of the best ways falls without each piece; -inf where none takes it."""
    edges, _ = state.words.best(scores, state.counts)
    used = state.words.used(edges, len(scores))
    taken, _ = state.others.best(scores, np.ones(len(state.cut)))
    whole = state.cut[state.others.owners()]
    inside = np.flatnonzero((taken > 0) & (whole >= 0))
    whole, parts = whole[inside], state.others.pieces[inside]
    every = used.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where a piece is gone, its parts occur more often, and there are more tokens in all.
        number = np.bincount(whole, minlength=len(scores))
        parted = np.bincount(whole, np.log(used[parts] + used[whole]), len(scores))
        without = parted - number * np.log(every + used * (number - 1))
        return np.where(used > 0, used * (np.log(used) - math.log(every) - without), -np.inf)


def logarithms(weights: Floats) -> Floats:
    """Return the log probabilities of weights."""
    return np.log(weights) - math.log(weights.sum())


def sparse(weights: Floats) -> Floats:
    """Return the logarithms of exp(digamma) of weights over that of their sum."""
    digammas = digamma(np.append(weights, weights.sum()))
    return digammas[:-1] - digammas[-1]


def digamma(values: Floats) -> Floats:
    """Return the derivative of the logarithm of the gamma function (Abramowitz and Stegun 1964, 6.3.5 and 6.3.18)."""
    result = np.zeros_like(values)
    for _ in range(7):
        small = values < 7
        result -= np.where(small, 1 / values, 0)
        values = np.where(small, values + 1, values)
    square = 1 / values**2
    return result + np.log(values) - 0.5 / values - square * (1 / 12 - square * (1 / 120 - square / 252))


def _greatest(values: Floats, count: int) -> NDArray[np.bool_]:
    """Return where the greatest values stand; of equal ones the first."""
    chosen = np.zeros(len(values), bool)
    chosen[np.argsort(-values, kind="stable")[:count]] = True
    return chosen
