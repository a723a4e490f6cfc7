"""pass@k: the probability that one of k programs for a problem passes its tests."""

from collections.abc import Sequence

import numpy as np

from orrery.errors import DataError, UsageError
from orrery.scores.resampled import AdditiveScore, mean_of
from orrery.scores.signature import signature


def estimate(samples: int, passed: int, k: int) -> float:
    r"""Return the unbiased estimate of pass@k from ``samples`` programs of which ``passed`` passed.

    .. math:: 1 - \binom{n - c}{k} / \binom{n}{k} = 1 - \prod_{i = n - c + 1}^{n} (1 - k / i)

    Paper: Chen et al. 2021, equation 1. Taking :math:`1 - (1 - c / n)^k` instead is biased.

    Raises:
        UsageError: fewer samples than ``k``, or more passed than there are.
    """
    if not 1 <= k <= samples or not 0 <= passed <= samples:
        raise UsageError(f"pass@{k} from {samples} samples of which {passed} passed", "draw at least k samples")
    if samples - passed < k:
        return 1.0
    return float(1 - np.prod(1 - k / np.arange(samples - passed + 1, samples + 1)))


def pass_at(k: int, passed: Sequence[int], samples: int, **facts: object) -> AdditiveScore:
    """Return pass@k over problems, each with as many ``samples``; ``facts`` go into the signature.

    Raises:
        DataError: there are no problems.
        UsageError: fewer samples than ``k``.
    """
    if not len(passed):
        raise DataError("there are no problems", "give at least one")
    values = [estimate(samples, count, k) for count in passed]
    return mean_of(f"pass@{k}", signature(**facts, samples=samples, estimator="Chen et al. 2021"), values)
