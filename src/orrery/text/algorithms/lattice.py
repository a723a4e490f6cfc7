r"""All ways to cut a word into pieces of a Unigram vocabulary: the best of them, and random ones.

Paper: Kudo 2018, sections 3.2 (a cut's probability is the product of its pieces') and 3.4 (sampling).

    P(cut) = \prod_i p(piece_i)^\alpha / \sum_{cuts} \prod_i p(piece_i)^\alpha

A character that is no piece of the vocabulary stands for itself at the score of the unknown piece.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from random import Random

PENALTY = 10.0
"""An unknown character scores this much less than the least piece, as in SentencePiece."""

Cut = tuple[str, ...]


@dataclass(frozen=True)
class Lattice:
    """The pieces of a vocabulary with their log probabilities."""

    scores: Mapping[str, float]

    def score(self, cut: Cut) -> float:
        """Return the log probability of a cut, alpha 1, without the sum over all cuts."""
        return sum(self.scores.get(piece, self._unknown) for piece in cut)

    def best(self, word: str, count: int) -> list[tuple[float, Cut]]:
        """Return the ``count`` most probable cuts with their scores, best first; of equals that with the longer end."""
        best_cuts: list[list[tuple[float, Cut]]] = [[(0.0, ())]]
        for end in range(1, len(word) + 1):
            longer = (
                (total + score, (*cut, word[start:end]))
                for start, score in self._pieces(word, end)
                for total, cut in best_cuts[start]
            )
            best_cuts.append(nsmallest(count, longer, key=lambda item: -item[0]))
        return best_cuts[-1]

    def probability(self, word: str, cut: Cut, alpha: float) -> float:
        """Return how often `sample` gives this cut of ``word``."""
        return math.exp(alpha * self.score(cut) - self._forward(word, alpha)[-1])

    def sample(self, word: str, alpha: float, rng: Random) -> list[str]:
        """Draw a cut: sum forward over all cuts of each beginning, then choose piece by piece from the end.

        ``alpha`` 0 makes all cuts equally probable; the larger it is, the nearer is every draw to the best cut.
        """
        totals = self._forward(word, alpha)
        drawn: list[str] = []
        end = len(word)
        while end:
            edges = list(self._pieces(word, end))
            weights = [math.exp(totals[start] + alpha * score - totals[end]) for start, score in edges]
            ((start, _),) = rng.choices(edges, weights)
            drawn.append(word[start:end])
            end = start
        return drawn[::-1]

    def _forward(self, word: str, alpha: float) -> list[float]:
        """Return for each end the logarithm of the sum over all cuts of the word up to there."""
        totals = [0.0]
        for end in range(1, len(word) + 1):
            terms = [totals[start] + alpha * score for start, score in self._pieces(word, end)]
            most = max(terms)
            totals.append(most + math.log(sum(math.exp(term - most) for term in terms)))
        return totals

    def _pieces(self, word: str, end: int) -> list[tuple[int, float]]:
        """Return where each piece that ends at ``end`` starts, longest first, and its score."""
        starts = range(max(0, end - self._longest), end - 1)
        known = [(start, self.scores[word[start:end]]) for start in starts if word[start:end] in self.scores]
        return [*known, (end - 1, self.scores.get(word[end - 1 : end], self._unknown))]

    @cached_property
    def _unknown(self) -> float:
        return min(self.scores.values()) - PENALTY

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.scores))
