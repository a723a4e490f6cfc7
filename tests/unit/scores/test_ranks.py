"""Scores of ranks against brute force, and against RecBole's formulas written out here."""

import math

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores.ranks import gain, hit_rate, mean_reciprocal, ranks_of


def brute_force(scores, right, kept):
    """The mean of the first and the last place that the right one has in any order of equal scores."""
    found = []
    for row, own, allowed in zip(scores, right, kept, strict=True):
        if not allowed[own]:
            found.append(math.inf)
            continue
        others = [row[n] for n in range(len(row)) if allowed[n] and n != own]
        first = 1 + sum(other > row[own] for other in others)
        last = 1 + sum(other >= row[own] for other in others)
        found.append((first + last) / 2)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_ranks_equal_a_brute_force_that_breaks_ties_both_ways(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (40, 12)).astype(float)  # many are equal
    kept, right = rng.random((40, 12)) < 0.8, rng.integers(0, 12, 40)
    assert ranks_of(scores, right, kept).tolist() == brute_force(scores, right, kept)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_scores_equal_recboles_formulas_on_given_rankings(k):
    rng = np.random.default_rng(k)
    scores, right = rng.normal(size=(200, 50)), rng.integers(0, 50, 200)
    # RecBole's evaluator has, for each user, whether each of the first k items is right, and how many are.
    top = np.argsort(-scores, axis=1)[:, :k]
    position, length = top == right[:, None], np.ones(200)
    hit = np.cumsum(position, axis=1)[:, -1] > 0
    ideal = 1 / np.log2(1 + np.minimum(length, k))
    ndcg = (position / np.log2(np.arange(2, k + 2))).sum(1) / ideal
    reciprocal = np.where(position.any(1), 1 / (position.argmax(1) + 1), 0.0)
    ranks = ranks_of(scores, right, np.ones_like(scores, bool))
    assert hit_rate(k, ranks).score == pytest.approx(hit.mean(), abs=1e-12)
    assert gain(k, ranks).score == pytest.approx(ndcg.mean(), abs=1e-12)
    assert mean_reciprocal(np.where(ranks <= k, ranks, np.inf)).score == pytest.approx(reciprocal.mean(), abs=1e-12)


def test_a_model_that_says_the_same_of_all_items_has_the_mean_rank():
    ranks = ranks_of(np.zeros((3, 9)), [0, 4, 8], np.ones((3, 9), bool))
    assert ranks.tolist() == [5.0, 5.0, 5.0]
    assert hit_rate(4, ranks).score == 0.0


def test_what_is_not_ranked_is_never_found():
    ranks = ranks_of(np.array([[1.0, 2.0]]), [0], np.array([[False, True]]))
    assert [hit_rate(10, ranks).score, gain(10, ranks).score, mean_reciprocal(ranks).score] == [0.0, 0.0, 0.0]


def test_impossible_ranks_and_scores_are_refused():
    for wrong in ([], [0.5], [float("nan")]):
        with pytest.raises(DataError, match="ranks"):
            hit_rate(10, wrong)
    with pytest.raises(DataError, match="first 0"):
        gain(0, [1.0])
    with pytest.raises(DataError, match="no number"):
        ranks_of(np.array([[float("nan"), 1.0]]), [1], np.ones((1, 2), bool))
