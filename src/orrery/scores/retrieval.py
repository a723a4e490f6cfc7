r"""Scores of rankings: hits, precision and recall at k, reciprocal rank, average precision, discounted cumulative gain.

All but the gain take the names found for each query, best first, and the names that are right; the gain takes a number
and a score for each candidate of each query, and so does the average precision of scores, where some may be equal.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, Floats, mean_of, same_length
from orrery.scores.signature import signature

Ranked = Sequence[Sequence[Hashable]]
Right = Sequence[Collection[Hashable]]
Lists = Sequence[Sequence[float | int]] | NDArray[Any]
Ties = Literal["mean", "order"]


def recall_at(k: int, ranked: Ranked, right: Right) -> AdditiveScore:
    """Return the mean share of the right names that are among the first ``k``.

    Raises:
        DataError: a query without a right name, a name ranked twice, or rankings and queries of different numbers.
    """
    _check(k, ranked, right)
    shares = [len(set(names[:k]) & set(own)) / len(set(own)) for names, own in zip(ranked, right, strict=True)]
    return mean_of(f"recall@{k}", signature(n=len(shares), k=k), shares)


def hit_at(k: int, ranked: Ranked, right: Right) -> AdditiveScore:
    """Return the share of queries with a right name among the first ``k``. Errors as in `recall_at`."""
    _check(k, ranked, right)
    hits = [bool(set(names[:k]) & set(own)) for names, own in zip(ranked, right, strict=True)]
    return mean_of(f"hit@{k}", signature(n=len(hits), k=k), list(map(float, hits)))


def precision_at(k: int, ranked: Ranked, right: Right) -> AdditiveScore:
    """Return the mean share of the first ``k`` places that right names have. Errors as in `recall_at`."""
    _check(k, ranked, right)
    shares = [len(set(names[:k]) & set(own)) / k for names, own in zip(ranked, right, strict=True)]
    return mean_of(f"precision@{k}", signature(n=len(shares), k=k), shares)


def reciprocal_rank(ranked: Ranked, right: Right, k: int | None = None) -> AdditiveScore:
    """Return the mean of one over the rank of the first right name, 0 where none is found (among the first ``k``).

    Errors as in `recall_at`.
    """
    _check(1 if k is None else k, ranked, right)
    firsts = [_first(names[:k], set(own)) for names, own in zip(ranked, right, strict=True)]
    facts = signature(n=len(firsts)) if k is None else signature(n=len(firsts), k=k)
    return mean_of("MRR" if k is None else f"MRR@{k}", facts, firsts)


def average_precision(ranked: Ranked, right: Right, k: int) -> AdditiveScore:
    r"""Return the mean of :math:`\sum_{r \le k} P(r) [r \text{ is right}] / \min(k, n)` of n right names (MAP).

    ``P(r)`` is the share of right names among the first r. Errors as in `recall_at`.
    """
    _check(k, ranked, right)
    values = [_average(names[:k], set(own), k) for names, own in zip(ranked, right, strict=True)]
    return mean_of(f"MAP@{k}", signature(n=len(values), k=k), values)


def average_precision_of_scores(scores: Lists, gains: Lists) -> AdditiveScore:
    r"""Return the mean of :math:`\sum_t (R_t - R_{t-1}) P_t` over the different scores t of a query (MAP).

    ``R_t`` and ``P_t`` are recall and precision of the candidates that score t or more, and those of a gain above 0 are
    right: equal scores stand in no order. A query without any gain has 0. Errors as in `ndcg_at`.
    """
    same_length(scores, gains, "rankings")
    pairs = [_read(n, *both) for n, both in enumerate(zip(scores, gains, strict=True), 1)]
    return mean_of("MAP", signature(n=len(pairs), ties="together"), [_stepwise(x, g > 0) for x, g in pairs])


def ndcg_at(k: int, scores: Lists, gains: Lists, ties: Ties = "mean") -> AdditiveScore:
    r"""Return the mean of DCG over the DCG of the best order, with DCG :math:`\sum_{r \le k} g_r / \log_2(r + 1)`.

    A query without any gain has 0. Equal scores share the mean gain of their places (``ties="mean"``, McSherry and
    Najork 2008), or keep the order in which they are given (``"order"``).

    Paper: Järvelin and Kekäläinen 2002. Differs from the form with :math:`2^g - 1`: give that as the gain.

    Raises:
        DataError: queries of different numbers or lengths, a gain below 0, a number that is not finite.
    """
    same_length(scores, gains, "rankings")
    if k < 1:
        raise DataError(f"the first {k}", "k is 1 or more")
    values = [_ndcg(k, *_read(n, *both), ties) for n, both in enumerate(zip(scores, gains, strict=True), 1)]
    return mean_of(f"nDCG@{k}", signature(n=len(values), k=k, gain="linear", log=2, ties=ties), values)


def ndcg_of_ranks(k: int, ranked: Ranked, grades: Sequence[Mapping[Any, float]]) -> AdditiveScore:
    r"""Return the mean of DCG over that of the best order of all right names, also of those that were not found.

    ``grades`` has the gain of each right name of a query. Errors as in `recall_at`.
    """
    _check(k, ranked, grades)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    values = []
    for names, own in zip(ranked, grades, strict=True):
        gains = np.array([own.get(name, 0.0) for name in names[:k]], np.float64)
        ideal = np.sort(np.array(list(own.values()), np.float64))[::-1][:k]
        values.append(float(gains @ discounts[: len(gains)]) / float(ideal @ discounts[: len(ideal)]))
    return mean_of(f"nDCG@{k}", signature(n=len(values), k=k, gain="linear", log=2, ideal="all"), values)


def _average(names: Sequence[Hashable], right: set[Hashable], k: int) -> float:
    hits = np.array([name in right for name in names], np.float64)
    precisions = hits.cumsum() / np.arange(1, len(hits) + 1)
    return float(precisions @ hits) / min(k, len(right))


def _stepwise(scores: Floats, right: NDArray[np.bool_]) -> float:
    if not right.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits = right[order].cumsum()
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    return float(np.diff(hits[last] / right.sum(), prepend=0) @ (hits[last] / (last + 1)))


def _first(names: Sequence[Hashable], right: set[Hashable]) -> float:
    return next((1 / rank for rank, name in enumerate(names, 1) if name in right), 0.0)


def _ndcg(k: int, scores: Floats, gains: Floats, ties: Ties) -> float:
    discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
    discounts[k:] = 0
    ideal = float(np.sort(gains)[::-1] @ discounts)
    if not ideal:
        return 0.0
    if ties == "order":
        return float(gains[np.argsort(-scores, kind="stable")] @ discounts) / ideal
    _, group, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    means = np.bincount(group, gains) / counts
    return float(np.repeat(means, counts) @ discounts) / ideal


def _read(number: int, scores: Any, gains: Any) -> tuple[Floats, Floats]:
    x, g = np.asarray(scores, np.float64), np.asarray(gains, np.float64)
    if x.shape != g.shape or x.ndim != 1 or not len(x):
        raise DataError(f"query {number}: {len(x)} scores, {len(g)} gains", "give one of each for every candidate")
    if not (np.isfinite(x).all() and np.isfinite(g).all() and (g >= 0).all()):
        raise DataError(f"query {number}: a number is not finite, or a gain below 0", "mend it")
    return x, g


def _check(k: int, ranked: Ranked, right: Right) -> None:
    same_length(ranked, right, "rankings")
    if k < 1:
        raise DataError(f"the first {k}", "k is 1 or more")
    for number, (names, own) in enumerate(zip(ranked, right, strict=True), 1):
        if not own:
            raise DataError(f"query {number} has no right name", "leave out queries that nothing answers")
        if len(set(names)) < len(names):
            raise DataError(f"query {number}: a name is ranked twice", "rank each name once")
