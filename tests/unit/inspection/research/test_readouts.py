"""Softmax and ridge regression against scikit-learn, in float64 on random data."""

import numpy as np
import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.inspection.research.readouts import LogisticRegression, RidgeRegression

linear = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")


def data(classes: int, rows: int = 240, features: int = 12, seed: int = 0):
    """Features of several scales, one of which never changes, and labels that depend on them."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=rng, dtype=torch.float64) * torch.logspace(-2, 2, features).double() + 3
    x[:, 4] = 0.7
    z = (x - x.mean(0)) / (x.std(0) + 1e-9)
    rule = torch.randn(features, classes, generator=rng, dtype=torch.float64)
    scores = z @ rule + torch.randn(rows, classes, generator=rng, dtype=torch.float64)
    return x[: rows // 2], x[rows // 2 :], scores[: rows // 2], scores[rows // 2 :]


def standardised(model):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_softmax_regression_is_scikit_learns(classes: int, penalty: float) -> None:
    x, other, scores, other_scores = data(classes)
    labels, wanted = 10 + scores.argmax(1), 10 + other_scores.argmax(1)
    # Two classes have one row of weights there, whose penalty is twice that of two opposite rows.
    strength = (2 if classes == 2 else 1) / penalty
    oracle = standardised(linear.LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)).fit(x.numpy(), labels)
    regression = LogisticRegression(penalty=penalty, tolerance=1e-8)
    fitted = regression.fit(x, labels)
    ours = fitted.scores(other).softmax(1).numpy()
    np.testing.assert_allclose(ours, oracle.predict_proba(other.numpy()), atol=2e-6)
    assert fitted.predict(other).tolist() == oracle.predict(other.numpy()).tolist()
    assert regression.score(fitted, other, wanted) == pytest.approx(oracle.score(other.numpy(), wanted), abs=1e-12)
    assert fitted.weight_CF[:, 4].abs().max() == 0  # what never changes tells nothing


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_ridge_regression_is_scikit_learns(penalty: float) -> None:
    x, other, scores, other_scores = data(3)
    oracle = standardised(linear.Ridge(alpha=penalty)).fit(x.numpy(), scores[:, 0])
    regression = RidgeRegression(penalty=penalty)
    fitted = regression.fit(x, scores[:, 0])
    np.testing.assert_allclose(fitted.predict(other), oracle.predict(other.numpy()), atol=1e-9)
    expected = oracle.score(other.numpy(), other_scores[:, 0])
    assert regression.score(fitted, other, other_scores[:, 0]) == pytest.approx(expected, abs=1e-9)
    weights = oracle[1].coef_ / oracle[0].scale_
    np.testing.assert_allclose(fitted.direction()[0], weights, atol=1e-9)


def test_a_comparison_sees_a_weaker_penalty() -> None:
    x, other, scores, _ = data(3)
    labels = scores.argmax(1)
    predictions = [LogisticRegression(penalty=penalty).fit(x, labels).scores(other) for penalty in (1.0, 1.01)]
    assert (predictions[0] - predictions[1]).abs().max() > 1e-4


def test_baselines_look_at_nothing() -> None:
    fitted, scored = torch.tensor([3, 3, 5]), torch.tensor([3, 5, 5, 5])
    assert LogisticRegression().baseline(fitted, scored) == 0.25
    numbers = torch.tensor([1.0, 2.0, 6.0])
    assert RidgeRegression().baseline(torch.tensor([3.0]), numbers) == pytest.approx(0.0)  # the mean itself
    assert RidgeRegression().baseline(torch.tensor([4.0]), numbers) == pytest.approx(-3 / 14)


@pytest.mark.parametrize(
    ("regression", "labels", "error", "why"),
    [
        (LogisticRegression(), [1, 1, 1, 1], UsageError, "of one class"),
        (LogisticRegression(penalty=0.0), [0, 1, 0, 1], UsageError, "penalty = 0.0"),
        (RidgeRegression(penalty=-1.0), [0.0, 1.0, 2.0, 3.0], UsageError, "penalty = -1.0"),
        (LogisticRegression(steps=1, penalty=1e-3), [0, 1, 0, 1], RunError, "has not converged"),
    ],
)
def test_what_cannot_be_fitted_is_refused(regression, labels, error, why: str) -> None:
    x = torch.tensor([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0], [0.5, 3.0]])
    with pytest.raises(error, match=why):
        regression.fit(x, torch.tensor(labels))
