"""The scores of a unigram model's pieces, by expectation maximisation in one fixed order.

Paper: Kudo 2018, section 3.2: a piece's weight is how often it is expected, over all segmentations of all words.

The engine adds the same numbers in the order of a hash table that differs from run to run, and sums of floats depend
on their order; from whole counts, and words in code point order, every run comes to the same digits.
"""

import math
from collections.abc import Iterable, Mapping

ROUNDS = 4
LEAST = 0.5
"""What a piece that is hardly ever expected counts, so that no score is infinite."""

LONGEST = 16
"""Longest piece, in characters; the engine's trainer makes no longer one."""

DIGITS = 9


def estimate(words: Mapping[str, int], pieces: Iterable[str]) -> dict[str, float]:
    """Return the log probability of each piece; the pieces hold every character of the counted words.

    The first weight of a piece is its number of occurrences times its length.
    """
    known = dict.fromkeys(sorted(pieces), 0.0)
    ordered = sorted(words.items())
    weights = dict(known)
    for word, count in ordered:
        for ways in _ways(word, known):
            for _, piece in ways:
                weights[piece] += count * len(piece)
    for _ in range(ROUNDS):
        scores = _logarithms(weights)
        weights = dict(known)
        for word, count in ordered:
            _expect(word, count, scores, weights)
    return {piece: round(score, DIGITS) for piece, score in _logarithms(weights).items()}


def _ways(word: str, known: Mapping[str, float]) -> list[list[tuple[int, str]]]:
    """Return, for each place after a character, the pieces that end there and where they start."""
    return [
        [(start, word[start:end]) for start in range(max(0, end - LONGEST), end) if word[start:end] in known]
        for end in range(1, len(word) + 1)
    ]


def _expect(word: str, count: int, scores: Mapping[str, float], weights: dict[str, float]) -> None:
    """Add how often each piece is expected in all occurrences of a word: forward, then backward."""
    ways = _ways(word, scores)
    before = [0.0]
    for found in ways:
        before.append(_add([before[start] + scores[piece] for start, piece in found]))
    after: list[list[float]] = [[] for _ in ways] + [[0.0]]
    for end in range(len(word), 0, -1):
        rest = _add(after[end])
        for start, piece in ways[end - 1]:
            onward = scores[piece] + rest
            after[start].append(onward)
            weights[piece] += count * math.exp(before[start] + onward - before[-1])


def _add(logarithms: list[float]) -> float:
    """Return the logarithm of a sum of numbers given by theirs."""
    most = max(logarithms)
    return most + math.log(sum(math.exp(one - most) for one in logarithms))


def _logarithms(weights: Mapping[str, float]) -> dict[str, float]:
    whole = math.log(sum(max(weight, LEAST) for weight in weights.values()))
    return {piece: math.log(max(weight, LEAST)) - whole for piece, weight in weights.items()}
