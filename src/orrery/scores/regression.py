r"""Scores of numbers: Pearson's and Spearman's correlation, mean squared and mean absolute error."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, Floats, Joint, mean_of, same_length
from orrery.scores.signature import signature

Numbers = Sequence[float | int] | Floats


def pearson(predicted: Numbers, gold: Numbers, centre: float | None = None) -> AdditiveScore:
    r"""Return :math:`\sum (x-\bar x)(y-\bar y) / \sqrt{\sum (x-\bar x)^2 \sum (y-\bar y)^2}`.

    It is NaN where one side is constant. ``centre`` is subtracted from the predicted numbers, by default their mean: it
    changes nothing but rounding, and two systems that are compared by a paired test need the same one.

    Raises:
        DataError: fewer than two numbers, one side has more, or one is not finite.
    """
    x, y = _read(predicted, gold, least=2)
    own = float(x.mean()) if centre is None else centre
    x, y = x - own, y - y.mean()  # the sums stay exact where the numbers lie far from 0
    sums = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], 1)
    return AdditiveScore("Pearson", signature(n=len(x)), sums, pearson_of, columns=(own,))


def pearson_of(sums: Floats) -> float:
    """Return the correlation from the sums of 1, x, y, xx, yy and xy; NaN where one side is constant."""
    n, x, y, xx, yy, xy = map(float, sums)
    spreads = n * xx - x * x, n * yy - y * y
    tiny = 1e-13  # of what was subtracted: below it nothing is left but rounding
    if n < 2 or spreads[0] <= tiny * n * xx or spreads[1] <= tiny * n * yy:
        return float("nan")
    return float(np.clip((n * xy - x * y) / (spreads[0] ** 0.5 * spreads[1] ** 0.5), -1, 1))


def spearman(predicted: Numbers, gold: Numbers) -> Joint:
    """Return Pearson's correlation of the ranks; equal numbers share their mean rank. NaN where one side is constant.

    Errors as in `pearson`. It is no function of sums: ranks are those of the numbers at hand.
    """
    x, y = _read(predicted, gold, least=2)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    facts = signature(n=len(pairs), ties="mean")
    return Joint("Spearman", facts, pairs, lambda drawn: rank_correlation(*zip(*drawn, strict=True)))


def squared_error(predicted: Numbers, gold: Numbers) -> AdditiveScore:
    r"""Return the mean of :math:`(x - y)^2`. Errors as in `pearson`."""
    x, y = _read(predicted, gold)
    return mean_of("squared-error", signature(n=len(x)), (x - y) ** 2, higher_is_better=False)


def absolute_error(predicted: Numbers, gold: Numbers) -> AdditiveScore:
    r"""Return the mean of :math:`|x - y|`. Errors as in `pearson`."""
    x, y = _read(predicted, gold)
    return mean_of("absolute-error", signature(n=len(x)), abs(x - y), higher_is_better=False)


def rank_correlation(one: Numbers, other: Numbers) -> float:
    """Return Spearman's correlation as a number. Errors as in `pearson`."""
    ranks = (_ranks(side) for side in _read(one, other, least=2))
    x, y = (rank - rank.mean() for rank in ranks)
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size else float("nan")


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])


def _read(predicted: Numbers, gold: Numbers, least: int = 1) -> tuple[Floats, Floats]:
    same_length(predicted, gold, "numbers")
    x, y = np.asarray(predicted, np.float64), np.asarray(gold, np.float64)
    if len(x) < least:
        raise DataError(f"a correlation of {len(x)} with {len(y)} values", f"give {least} or more")
    for side, values in (("predicted", x), ("right", y)):
        if not np.isfinite(values).all():
            place = int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(f"{side} number {place + 1} is {values[place]}", "leave it out on both sides, or mend it")
    return x, y
