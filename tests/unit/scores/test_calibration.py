"""Calibration against a second computation, bin by bin, and against torch and scikit-learn."""

import math

import numpy as np
import pytest
import torch

from orrery.errors import DataError
from orrery.scores.calibration import brier, calibration_error, negative_log_likelihood, reliability


def probabilities(seed, rows=200, labels=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(labels) * 0.5, size=rows)
    return p, rng.integers(labels, size=rows)


def by_hand(p, gold, bins):
    total = 0.0
    for b in range(bins):
        inside = [
            (max(row), float(np.argmax(row) == y))
            for row, y in zip(p, gold, strict=True)
            if b / bins < max(row) <= (b + 1) / bins
        ]
        if inside:
            means = [sum(column) / len(inside) for column in zip(*inside, strict=True)]
            total += len(inside) / len(p) * abs(means[0] - means[1])
    return total


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_the_calibration_error_is_that_of_the_definition(bins):
    for seed in range(10):
        p, gold = probabilities(seed)
        assert calibration_error(p, gold, bins).score == pytest.approx(by_hand(p, gold, bins), abs=1e-12)
        table = reliability(p, gold, bins)
        assert sum(line.examples for line in table) == len(p)
        error_found = sum(b.examples / len(p) * abs(b.confidence - b.accuracy) for b in table if b.examples)
        assert error_found == pytest.approx(by_hand(p, gold, bins), abs=1e-12)
    assert "bins:15|width:equal|confidence:max" in calibration_error(p, gold).signature


def test_a_model_that_says_what_it_knows_is_calibrated():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    rows, gold = np.stack([1 - p, p], 1), (rng.uniform(size=20_000) < p).astype(int)
    assert calibration_error(rows, gold).score < 0.02
    assert calibration_error(rows, 1 - gold).score > 0.4


def test_borders_of_bins():
    table = reliability([[1.0, 0.0], [0.5, 0.5]], [0, 1], bins=2)
    assert [(line.examples, line.confidence, line.accuracy) for line in table] == [(1, 0.5, 0.0), (1, 1.0, 1.0)]
    assert math.isnan(reliability([[1.0, 0.0]], [0], bins=2)[0].accuracy)


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_and_brier(seed):
    p, gold = probabilities(seed)
    expected = torch.nn.functional.nll_loss(torch.tensor(p).log(), torch.tensor(gold)).item()
    assert negative_log_likelihood(p, gold).score == pytest.approx(expected)
    hot = torch.nn.functional.one_hot(torch.tensor(gold), 3).numpy()
    assert brier(p, gold).score == pytest.approx(((p - hot) ** 2).sum(1).mean())
    assert negative_log_likelihood([[0.0, 1.0]], [0]).score == math.inf
    metrics = pytest.importorskip("sklearn.metrics")
    two, right = probabilities(seed, labels=2)
    assert brier(two, right).score == pytest.approx(2 * metrics.brier_score_loss(right, two[:, 1]))
    assert negative_log_likelihood(two, right).score == pytest.approx(metrics.log_loss(right, two))


@pytest.mark.parametrize(
    ("p", "gold", "text"),
    [
        ([], [], "0 predicted rows"),
        ([[0.5, 0.5]], [0, 1], "1 predicted rows of probabilities, 2 right ones"),
        ([[0.5, 0.5], [0.5, float("nan")]], [0, 1], "row 2 is no probabilities"),
        ([[2.0, -1.0]], [0], "row 1 is no probabilities"),
        ([[0.5, 0.5]], [2], "labels from 2 to 2, 2 columns"),
        ([[0.5, 0.5], [1.0]], [0, 0], "unequal lengths"),
        ([[0.5, 0.5]], [-1], "labels from -1 to -1"),
    ],
)
def test_what_cannot_be_scored(p, gold, text):
    for score in (calibration_error, brier, negative_log_likelihood):
        with pytest.raises(DataError, match=text):
            score(p, gold)
