r"""Precision, recall and F1 from three counts a label, and their averages over labels.

With ``b`` predicted and right, ``p`` predicted and ``g`` right: :math:`P = b/p`, :math:`R = b/g`,
:math:`F_1 = 2PR/(P+R) = 2b/(p+g)`. A ratio over nothing is 0, as with scikit-learn's ``zero_division=0``.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Average = Literal["micro", "macro", "weighted"]
AVERAGES: tuple[Average, ...] = ("micro", "macro", "weighted")
ZERO = 0
"""What a ratio over nothing is."""


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision, recall and F1 of one label or one average, and how many were right (``support``)."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


def ratios(counts: Floats) -> Floats:
    """Return precision, recall and F1 ``[3, labels]`` of counts ``[3, labels]``: predicted and right, predicted, right.

    >>> ratios(np.array([[1.0], [2.0], [4.0]])).tolist()
    [[0.5], [0.25], [0.3333333333333333]]
    """
    both, predicted, right = counts
    return np.stack([_over(both, predicted), _over(both, right), _over(2 * both, predicted + right)])


def averaged(counts: Floats, average: Average) -> Floats:
    """Return the three ratios ``[3]``.

    micro takes them of the labels' counts together, macro means them over the labels that occur on either side,
    weighted means them by how often each label is right.
    """
    if average == "micro":
        return ratios(counts.sum(1, keepdims=True))[:, 0]
    weights = counts[2] if average == "weighted" else (counts[1] + counts[2] > 0).astype(np.float64)
    total = weights.sum()
    return np.asarray(ratios(counts) @ weights / total) if total else np.zeros(3)


def f1_of(sums: Floats, average: Average) -> float:
    """Return the averaged F1 of counts laid out in a row, ``[3 * labels]``."""
    return float(averaged(sums.reshape(3, -1), average)[2])


def table(labels: tuple[str, ...], counts: Floats) -> list[PrecisionRecall]:
    """Return a line for each label, and one for each average."""
    each = ratios(counts).T
    lines = [_line(name, row, n) for name, row, n in zip(labels, each, counts[2], strict=True)]
    return lines + [_line(name, averaged(counts, name), counts[2].sum()) for name in AVERAGES]


def _line(label: str, three: Floats, support: float) -> PrecisionRecall:
    precision, recall, f1 = map(float, three)
    return PrecisionRecall(label, precision, recall, f1, int(support))


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full_like(above, ZERO, dtype=np.float64), where=below > 0)
