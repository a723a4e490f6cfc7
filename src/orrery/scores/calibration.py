r"""Whether probabilities mean what they say: calibration error, reliability table, Brier score, likelihood.

``probabilities`` has a row for each example with one number for each label, ``gold`` the number of the right label.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, Floats, mean_of, same_length
from orrery.scores.signature import signature

BINS = 15
"""Bins of equal width in Guo et al. 2017."""

Probabilities = Sequence[Sequence[float | int]] | Floats
Gold = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class Bin:
    """The examples whose confidence lies in (low, high]: their mean confidence, and the share that is right."""

    low: float
    high: float
    examples: int
    confidence: float
    accuracy: float


def calibration_error(probabilities: Probabilities, gold: Gold, bins: int = BINS) -> AdditiveScore:
    r"""Return :math:`\sum_b \frac{n_b}{n} |\text{accuracy}_b - \text{confidence}_b|` over bins of equal width.

    Confidence is the largest probability; of equal ones the first label counts.
    Bins are (low, high], and 0 is in the first.

    Paper: Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017.

    Raises:
        DataError: rows are no probabilities, a label has no column, or the numbers of rows and labels differ.
    """
    facts = signature(n=len(gold), bins=bins, width="equal", confidence="max")
    return AdditiveScore("calibration-error", facts, _binned(probabilities, gold, bins), _gap, higher_is_better=False)


def reliability(probabilities: Probabilities, gold: Gold, bins: int = BINS) -> list[Bin]:
    """Return the bins of `calibration_error`; one without examples has confidence and accuracy NaN."""
    sums = _binned(probabilities, gold, bins).sum(0).reshape(3, bins)
    counts = np.where(sums[0] > 0, sums[0], np.nan)
    means, edges = sums[1:] / counts, np.linspace(0, 1, bins + 1)
    return [
        Bin(float(edges[b]), float(edges[b + 1]), int(sums[0, b]), float(means[0, b]), float(means[1, b]))
        for b in range(bins)
    ]


def brier(probabilities: Probabilities, gold: Gold) -> AdditiveScore:
    r"""Return the mean of :math:`\sum_k (p_k - [k = \text{gold}])^2`, from 0 to 2. Errors as in `calibration_error`.

    Paper: Brier 1950. Differs from the form for two labels that looks at one of them alone: that is half of this.
    """
    p, right = _read(probabilities, gold)
    errors = p.copy()
    errors[np.arange(len(p)), right] -= 1
    return mean_of("Brier", signature(n=len(p), labels=p.shape[1]), (errors**2).sum(1), higher_is_better=False)


def negative_log_likelihood(probabilities: Probabilities, gold: Gold) -> AdditiveScore:
    r"""Return the mean of :math:`-\ln p_\text{gold}` in nats; infinite where a right label has probability 0."""
    p, right = _read(probabilities, gold)
    with np.errstate(divide="ignore"):
        nats = -np.log(p[np.arange(len(p)), right])
    return mean_of("nats", signature(n=len(p), labels=p.shape[1], log="e"), nats, higher_is_better=False)


def _binned(probabilities: Probabilities, gold: Gold, bins: int) -> Floats:
    """Return ``[examples, 3 * bins]``: each example has, at its bin, 1, its confidence and whether it is right."""
    if bins < 1:
        raise DataError(f"{bins} bins", "give one or more")
    p, right = _read(probabilities, gold)
    confidence, hit = p.max(1), (p.argmax(1) == right).astype(np.float64)
    place = np.clip(np.searchsorted(np.linspace(0, 1, bins + 1), confidence, side="left") - 1, 0, bins - 1)
    sums, rows = np.zeros((len(p), 3, bins)), np.arange(len(p))
    for row, values in enumerate((np.ones_like(hit), confidence, hit)):
        sums[rows, row, place] = values
    return sums.reshape(len(p), -1)


def _gap(sums: Floats) -> float:
    counts, confidence, right = sums.reshape(3, -1)
    return float(abs(right - confidence).sum() / counts.sum())


def _read(probabilities: Probabilities, gold: Gold) -> tuple[Floats, NDArray[np.int64]]:
    same_length(probabilities, gold, "rows of probabilities")
    if len({len(row) for row in probabilities}) > 1:
        raise DataError("rows of probabilities of unequal lengths", "give one number for each label in every row")
    p, right = np.asarray(probabilities, np.float64), np.asarray(gold)
    wrong = ~(np.isfinite(p).all(1) & (p >= 0).all(1) & (abs(p.sum(1) - 1) < 1e-3))
    if wrong.any():
        number = int(np.flatnonzero(wrong)[0])
        raise DataError(f"row {number + 1} is no probabilities: {p[number][:4].tolist()}", "they are >= 0 and add to 1")
    if right.dtype.kind not in "iu" or right.min() < 0 or right.max() >= p.shape[1]:
        raise DataError(f"labels from {right.min()} to {right.max()}, {p.shape[1]} columns", "labels count from 0")
    return p, right.astype(np.int64)
