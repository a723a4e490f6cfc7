import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.beams import LengthPenalty
from orrery.generation.row import Limits
from orrery.generation.search import beam_search
from orrery.nn.attention.kernels import eager
from orrery.nn.context import Execution
from tiny_models import smallest

SOURCES = [[5, 9, 31, 8], [7, 12]]
LIMITS = Limits(6, 24, end=(3,))


def coverage(model, source, answer):
    """The sum over the source of log min(attention, 1), by stepping through one answer alone."""
    patterns = []

    def keep(key, value):
        if key.endswith("cross.pattern"):
            patterns.append(value[0, :, -1].mean(0)[-len(source) :])
        return value

    looking = Execution(eager, taps=keep)
    with torch.no_grad():
        _, session = model.start(torch.tensor([source]), 24, execution=looking)
        for token in answer[:-1]:
            model.step(torch.tensor([[token]]), session, execution=looking)
    layers = len(patterns) // len(answer)
    looked = torch.stack(patterns).view(len(answer), layers, -1).mean(1).sum(0)
    return float(looked.clamp(1e-9, 1.0).log().sum())


@pytest.mark.parametrize("family", ["t5", "bart", "rnnsearch", "luong"])
def test_scores_are_the_paper_s(family):
    model = smallest(family)
    answers_found = beam_search(model, SOURCES, LIMITS, 3, answers=3, penalty=LengthPenalty(0.6), coverage_penalty=0.4)
    for source, answers in zip(SOURCES, answers_found, strict=True):
        assert [one.score for one in answers] == sorted((one.score for one in answers), reverse=True)
        for one in answers:
            plain = one.log_probability / LengthPenalty(0.6)(len(one.ids))
            assert one.score == pytest.approx(plain + 0.4 * coverage(model, source, one.ids), abs=1e-6)


def test_no_coverage_is_beam_search():
    model = smallest("t5")
    assert beam_search(model, SOURCES, LIMITS, 3, coverage_penalty=0.0) == beam_search(model, SOURCES, LIMITS, 3)


@pytest.mark.parametrize(("family", "beta"), [("gpt2", 0.2), ("sutskever", 0.2), ("t5", -1.0), ("t5", math.nan)])
def test_what_has_no_coverage_is_refused(family, beta):
    with pytest.raises(UsageError):
        beam_search(smallest(family), SOURCES, LIMITS, 2, coverage_penalty=beta)
