"""Correlations and errors against scipy and NumPy."""

import numpy as np
import pytest
from scipy import stats

from orrery.errors import DataError
from orrery.scores.regression import absolute_error, pearson, pearson_of, spearman, squared_error


@pytest.mark.parametrize("seed", range(30))
def test_they_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=20) * 10.0 ** rng.integers(-3, 4)
    y = x + rng.normal(size=20) + rng.normal() * 1e3
    if seed % 2:
        x, y = np.round(x), np.round(y)  # ties
    if np.ptp(x) and np.ptp(y):
        assert pearson(x, y).score == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-9)
        assert spearman(x, y).score == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)
    assert squared_error(x, y).score == pytest.approx(np.mean((x - y) ** 2))
    assert absolute_error(x.tolist(), y.tolist()).score == pytest.approx(np.mean(abs(x - y)))
    assert not squared_error(x, y).higher_is_better


def test_a_rank_correlation_is_not_that_of_numbers():
    assert spearman([1, 2, 3], [1, 2, 300]).score == 1
    assert pearson([1, 2, 3], [1, 2, 300]).score < 0.9


def test_rounding_makes_no_correlation_beyond_one():
    for seed in range(30):
        x = np.random.default_rng(seed).normal(size=7)
        for sign in (1, -1):
            assert -1 <= sign * pearson(x, sign * (3 * x + 1)).score <= 1
    # What sums that were rounded apart would give by themselves: 1.5.
    for sign in (1, -1):
        assert pearson_of(np.array([2.0, 0.0, 0.0, 1.0, 1.0, sign * 1.5])) == sign


def test_numbers_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert pearson(x + 1e6, y + 1e6).score == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_no_correlation_is_rounded_past_one(sign):
    """Of two numbers and their multiples every correlation is 1 or -1, and some quotients round to more."""
    pairs = [np.random.default_rng(seed).normal(size=2) for seed in range(30)]
    quotients = []
    for x in pairs:
        n, a, b, aa, bb, ab = pearson(x, sign * x).sums.sum(0)
        quotients.append(sign * (n * ab - a * b) / ((n * aa - a * a) ** 0.5 * (n * bb - b * b) ** 0.5))
    assert max(quotients) > 1
    assert max(sign * pearson(x, sign * x).score for x in pairs) == 1


def test_two_numbers_are_the_least_that_correlate():
    for score in (pearson, spearman):
        assert score([1, 2], [3, 5]).score == pytest.approx(1)
        assert score([1, 2], [5, 3]).score == pytest.approx(-1)
    assert np.isnan(pearson_of(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])))


def test_a_constant_side_has_no_correlation():
    for score in (pearson, spearman):
        assert np.isnan(score([1.1, 1.1, 1.1], [1, 2, 3]).score)
        assert np.isnan(score([1, 2, 3], [0.3, 0.3, 0.3]).score)


@pytest.mark.parametrize("score", [pearson, spearman, squared_error, absolute_error])
def test_what_cannot_be_scored(score):
    for ours, theirs, text in (
        ([], [], "0 predicted numbers"),
        ([1.0, 2.0], [1.0], "2 predicted numbers, 1 right ones"),
        ([1.0, float("nan")], [1.0, 2.0], "predicted number 2 is nan"),
        ([1.0, 2.0], [float("inf"), 2.0], "right number 1 is inf"),
    ):
        with pytest.raises(DataError, match=text):
            score(ours, theirs)
    if score in (pearson, spearman):
        with pytest.raises(DataError, match="1 with 1"):
            score([1.0], [1.0])
