"""Several models together, against sums over all labels."""

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.tasks.xbert.ensemble import together


@pytest.mark.parametrize("seed", range(5))
def test_an_ensemble_has_the_mean_of_the_scores(seed):
    rng = np.random.default_rng(seed)
    scores_NV = rng.random((int(rng.integers(1, 5)), 12)) * (rng.random((1, 12)) < 0.8)
    kept_NV = rng.random(scores_NV.shape) < 0.6
    answers = [
        sorted(({"label": f"l{n}", "score": own[n]} for n in np.flatnonzero(kept)), key=lambda each: -each["score"])
        for own, kept in zip(scores_NV, kept_NV, strict=True)
    ]
    means_V = (scores_NV * kept_NV).mean(0)
    found = together(answers, 4)
    wanted = np.sort(means_V[kept_NV.any(0)])[::-1][:4]
    assert [each["score"] for each in found] == pytest.approx(wanted.tolist(), abs=1e-12)
    assert all(means_V[int(each["label"][1:])] == pytest.approx(each["score"]) for each in found)


def test_equal_ones_stand_as_named_and_one_answer_stays_as_it_is():
    one, other = [{"label": "a", "score": 0.4}, {"label": "b", "score": 0.2}], [{"label": "c", "score": 0.4}]
    assert [each["label"] for each in together([one, other])] == ["a", "c", "b"]
    assert together([one]) == one


@pytest.mark.parametrize(("answers", "top_k"), [([], 5), ([[{"label": "a", "score": 1.0}]], 0)])
def test_nothing_to_put_together_is_refused(answers, top_k):
    with pytest.raises(DataError, match=f"{len(answers)} answers, the first {top_k}"):
        together(answers, top_k)
