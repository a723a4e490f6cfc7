"""Rankings: counted by hand, and gains against scikit-learn with and without ties."""

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores.retrieval import ndcg_at, recall_at, reciprocal_rank


def test_recall_and_reciprocal_rank_counted_by_hand():
    ranked, right = [["a", "b", "c"], ["x", "y"], ["q"]], [{"b", "z"}, ["y"], ["none"]]
    assert recall_at(1, ranked, right).score == 0
    assert recall_at(2, ranked, right).score == pytest.approx((0.5 + 1 + 0) / 3)
    assert reciprocal_rank(ranked, right).score == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert str(recall_at(2, ranked, right)).startswith("recall@2 0.5000 (n:3|k:2|orrery:")


@pytest.mark.parametrize("seed", range(30))
def test_gain_agrees_with_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    gains = rng.integers(4, size=(5, 8)) * (rng.random((5, 1)) < 0.8)
    k = int(rng.integers(1, 10))
    tied, plain = rng.integers(3, size=(5, 8)), rng.permuted(np.arange(40)).reshape(5, 8)
    assert ndcg_at(k, tied, gains).score == pytest.approx(metrics.ndcg_score(gains, tied, k=k), abs=1e-12)
    expected = metrics.ndcg_score(gains, plain, k=k, ignore_ties=True)
    assert ndcg_at(k, plain, gains, "order").score == pytest.approx(expected, abs=1e-12)
    assert ndcg_at(k, plain, gains).score == pytest.approx(expected, abs=1e-12)


def test_ties_are_told_apart():
    assert ndcg_at(1, [[1, 1]], [[1, 0]], "order").score == 1
    assert ndcg_at(1, [[1, 1]], [[1, 0]]).score == 0.5
    assert "ties:mean" in ndcg_at(1, [[1, 1]], [[1, 0]]).signature


def test_what_cannot_be_scored():
    for call, text in (
        (lambda: recall_at(1, [], []), "0 predicted rankings"),
        (lambda: recall_at(0, [["a"]], [["a"]]), "the first 0"),
        (lambda: reciprocal_rank([["a"]], [[]]), "query 1 has no right name"),
        (lambda: reciprocal_rank([["a", "a"]], [["a"]]), "ranked twice"),
        (lambda: ndcg_at(1, [[1.0]], [[1.0, 2.0]]), "query 1: 1 scores, 2 gains"),
        (lambda: ndcg_at(1, [[float("nan")]], [[1.0]]), "not finite"),
        (lambda: ndcg_at(1, [[1.0]], [[-1.0]]), "gain below 0"),
        (lambda: ndcg_at(0, [[1.0]], [[1.0]]), "the first 0"),
    ):
        with pytest.raises(DataError, match=text):
            call()
