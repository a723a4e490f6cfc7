"""Precision of rankings in which a rare label counts more: it is left out of data more often (Jain et al. 2016)."""

import math
from collections.abc import Hashable, Mapping

import numpy as np

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, share
from orrery.scores.retrieval import Ranked, Right
from orrery.scores.signature import signature

A, B = 0.55, 1.5
"""Of most published sets; Wikipedia's have 0.5 and 0.4, Amazon's 0.6 and 2.6."""


class Propensities:
    """``p = 1 / (1 + C e^(-A ln(n + B)))`` with ``C = (ln N - 1) (B + 1)^A``: how likely a label is not left out.

    Args:
        counts: of the N training texts how many have each label, ``n``; other labels have none.
        texts: N.
        a: A.
        b: B.

    Raises:
        DataError: N is 1 or less: C is then so far below 0 that some label has no propensity. Or B is not above 0, or
            the three numbers give a label without a text no propensity.
    """

    def __init__(self, counts: Mapping[Hashable, int], texts: int, a: float = A, b: float = B) -> None:
        if texts < 2:
            raise DataError(f"propensities from {texts} texts", "count the labels of two training texts or more")
        self.counts, self.a, self.b = counts, a, b
        self.c = (math.log(texts) - 1) * (b + 1) ** a
        if b <= 0 or 1 + self.c * b**-a <= 0:
            raise DataError(
                f"propensities with A {a} and B {b} from {texts} texts", f"A is {A} and B {B} for most data"
            )

    def of(self, label: Hashable) -> float:
        """Return ``p``."""
        return 1 / (1 + self.c * math.exp(-self.a * math.log(self.counts.get(label, 0) + self.b)))


def propensity_precision_at(k: int, ranked: Ranked, right: Right, propensities: Propensities) -> AdditiveScore:
    r"""Return :math:`\sum \sum_{r \le k, right} 1 / p_r` over texts and ranks, over that of the best order (PSP@k).

    Raises:
        DataError: a text without a right label, or rankings and texts of different numbers.
    """
    if len(ranked) != len(right) or not all(right) or k < 1:
        message = f"propensity-scored precision at {k} of {len(ranked)} rankings for {len(right)} texts"
        raise DataError(message, "give k of 1 or more, and a ranking and a right label for each text")
    sums = np.zeros((len(right), 2))
    for number, (names, own) in enumerate(zip(ranked, right, strict=True)):
        worth = {name: 1 / propensities.of(name) for name in set(own)}
        sums[number, 0] = sum(worth.get(name, 0.0) for name in names[:k])
        sums[number, 1] = sum(sorted(worth.values(), reverse=True)[:k])
    facts = signature(n=len(right), k=k, a=propensities.a, b=propensities.b, labels=len(propensities.counts))
    return AdditiveScore(f"PSP@{k}", facts, sums, share)
