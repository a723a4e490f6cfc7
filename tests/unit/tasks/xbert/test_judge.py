"""The scores of given rankings against the XMLRepository's definitions, as matrices of all texts and labels."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.tasks.xbert.scoring import Judge

LABELS, TRAIN, TEXTS = 30, 400, 50


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_definitions(seed):
    rng = np.random.default_rng(seed)
    train_NV = rng.random((TRAIN, LABELS)) < rng.random(LABELS) ** 4 * 0.5
    train_NV[0] = True  # each label has a text
    right_MV = rng.random((TEXTS, LABELS)) < 0.1
    right_MV[np.arange(TEXTS), rng.integers(LABELS, size=TEXTS)] = True
    order_MV = rng.permuted(np.tile(np.arange(LABELS), (TEXTS, 1)), axis=1)
    source = SimpleNamespace(
        counts={f"l{n}": int(count) for n, count in enumerate(train_NV.sum(0))},
        train=[None] * TRAIN,
        held_back=[SimpleNamespace(classes=tuple(f"l{n}" for n in np.flatnonzero(own))) for own in right_MV],
    )
    rankings = [[(int(label), -float(place)) for place, label in enumerate(own[:10])] for own in order_MV]
    found = {score.name: score.score for score in Judge(source).scores(rankings)}
    ranked_MV = np.take_along_axis(right_MV, order_MV, 1)
    c = (np.log(TRAIN) - 1) * 2.5**0.55
    inverse_V = 1 + c * (train_NV.sum(0) + 1.5) ** -0.55
    worth_MV, best_MV = ranked_MV * inverse_V[order_MV], -np.sort(-(right_MV * inverse_V), axis=1)
    for k in (1, 3, 5):
        assert found[f"precision@{k}"] == pytest.approx(ranked_MV[:, :k].sum() / (k * TEXTS), abs=1e-12)
        assert found[f"PSP@{k}"] == pytest.approx(worth_MV[:, :k].sum() / best_MV[:, :k].sum(), abs=1e-12)
    discounts = 1 / np.log2(np.arange(2, 7))
    ideal = [discounts[: min(5, int(count))].sum() for count in right_MV.sum(1)]
    assert found["nDCG@5"] == pytest.approx(np.mean(ranked_MV[:, :5] @ discounts / ideal), abs=1e-12)
    for k in (5, 10):
        assert found[f"recall@{k}"] == pytest.approx(np.mean(ranked_MV[:, :k].sum(1) / right_MV.sum(1)), abs=1e-12)
