r"""Scores of ranks: where the one right item stands among all candidates, equal scores counted half.

The rank of an item with the score s is :math:`1 + |\{j : s_j > s\}| + \frac12 |\{j : s_j = s\}|` over the other
candidates j, so that a ranking which gives all the same score has the mean rank, and the order of a file earns nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, Floats, mean_of
from orrery.scores.signature import signature

Ranks = Sequence[float] | Floats
SAMPLED = "sampled metrics do not keep the order of models (Krichene and Rendle 2020)"


def ranks_of(scores: Floats, right: Sequence[int] | NDArray[np.int64], candidates: NDArray[np.bool_]) -> Floats:
    """Return the rank of one right item in each row, from 1; infinity where it is no candidate.

    Args:
        scores: of each item, [rows, items]; larger is better.
        right: the number of the right item of each row.
        candidates: which items are ranked, [rows, items].

    Raises:
        DataError: a score is no number.
    """
    rows = np.arange(len(scores))
    own = scores[rows, right][:, None]
    if np.isnan(scores[candidates]).any():
        raise DataError("a score is no number", "the model is broken, or was trained too fast: lower its rate")
    above = ((scores > own) & candidates).sum(1)
    equal = ((scores == own) & candidates).sum(1) - 1  # the right one equals itself
    return np.where(candidates[rows, right], 1 + above + equal / 2, np.inf)


def hit_rate(k: int, ranks: Ranks, how: str = "") -> AdditiveScore:
    """Return the share of ranks up to ``k``: HR@k, which is recall@k where one item is right.

    Raises:
        DataError: no rank, one below 1, or ``k`` below 1.
    """
    found = _checked(k, ranks)
    return mean_of(f"HR@{k}", _signature(found, k, how), (found <= k).astype(np.float64))


def gain(k: int, ranks: Ranks, how: str = "") -> AdditiveScore:
    r"""Return the mean of :math:`[r \le k] / \log_2(r + 1)`: NDCG@k, where one item is right. Errors as `hit_rate`."""
    found = _checked(k, ranks)
    values = np.where(found <= k, 1 / np.log2(found + 1), 0.0)
    return mean_of(f"NDCG@{k}", _signature(found, k, how), values)


def mean_reciprocal(ranks: Ranks, how: str = "") -> AdditiveScore:
    """Return the mean of ``1 / r``: MRR, over the whole ranking. Errors as in `hit_rate`."""
    found = _checked(1, ranks)
    return mean_of("MRR", _signature(found, None, how), 1 / found)


def _checked(k: int, ranks: Ranks) -> Floats:
    found = np.asarray(ranks, np.float64)
    if not found.size or (found < 1).any() or np.isnan(found).any():
        raise DataError(f"{found.size:,} ranks, of which one is below 1 or none is there", "count ranks from 1")
    if k < 1:
        raise DataError(f"the first {k}", "k is 1 or more")
    return found


def _signature(found: Floats, k: int | None, how: str) -> str:
    facts: dict[str, object] = {"n": len(found), **({} if k is None else {"k": k}), "ties": "half"}
    return signature(**facts) + (f"|{how}" if how else "")
