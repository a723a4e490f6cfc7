"""Several rankers together: other encoders, trees or seeds, and a tree of linear models among them."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from orrery.tasks.xbert.ranker import Ranking


def together(rankings: Sequence[Sequence[Ranking]], most: int) -> list[Ranking]:
    """Return for each text the labels of the largest mean score, that of a ranker which does not name one being 0.

    The mean is that of the scores, not of their logarithms; equal ones stand in the order of their numbers.

    Args:
        rankings: of each ranker, one for each text.
        most: labels that are kept.
    """
    found: list[Ranking] = []
    for own in zip(*rankings, strict=True):
        sums: defaultdict[int, float] = defaultdict(float)
        for ranking in own:
            for label, score in ranking:
                sums[label] += float(np.exp(score)) / len(rankings)
        best = sorted(sums, key=lambda label: (-sums[label], label))[:most]
        found.append([(label, float(np.log(max(sums[label], 1e-30)))) for label in best])
    return found
