import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.beams import LengthPenalty
from orrery.generation.diverse import diverse_beam_search
from orrery.generation.row import Limits
from orrery.generation.scoring import log_probabilities
from orrery.generation.search import beam_search
from tiny_models import smallest

PROMPT = [5, 9, 31]
LIMITS = Limits(5, 24, end=(3,))


def by_the_paper(model, width, groups, diversity):
    """One beam a group (width == groups), whole forwards, no early end."""
    rows, totals = [list(PROMPT) for _ in range(groups)], [0.0] * groups
    for _ in range(5):
        chosen = []
        for group in range(groups):
            if len(rows[group]) > len(PROMPT) and rows[group][-1] == 3:
                continue
            with torch.no_grad():
                logp = model.logits(torch.tensor([rows[group]]))[0, -1].log_softmax(-1)
            for token in chosen:
                logp[token] -= diversity
            token = int(logp.argmax())
            rows[group].append(token)
            totals[group] += float(logp[token])
            chosen.append(token)
    return [row[len(PROMPT) :] for row in rows], totals


@pytest.mark.parametrize("family", ["gpt2", "lstm"])
@pytest.mark.parametrize("diversity", [0.0, 0.7, 5.0])
def test_one_beam_a_group_is_the_algorithm_of_the_paper(family, diversity):
    model = smallest(family)
    groups = diverse_beam_search(model, PROMPT, LIMITS, 3, 3, diversity=diversity, penalty=LengthPenalty(0.0))
    ids, totals = by_the_paper(model, 3, 3, diversity)
    assert [group[0].ids for group in groups] == ids
    assert [group[0].score for group in groups] == pytest.approx(totals)
    for (answer,) in groups:
        row = torch.tensor([[*PROMPT, *answer.ids]])
        with torch.no_grad():
            each = log_probabilities(model.logits(row), row)[0, len(PROMPT) - 1 :]
        assert answer.log_probability == pytest.approx(float(each.sum()))


@pytest.mark.parametrize("family", ["gpt2", "t5", "rnnsearch"])
def test_one_group_and_groups_without_diversity_are_beam_search(family):
    model = smallest(family)
    plain = beam_search(model, [PROMPT], LIMITS, 2, answers=2)[0]
    assert diverse_beam_search(model, PROMPT, LIMITS, 2, 1, diversity=9.0) == [plain]
    alike = diverse_beam_search(model, PROMPT, LIMITS, 4, 2, diversity=0.0)
    assert [[one.ids for one in group] for group in alike] == [[one.ids for one in plain]] * 2


def test_diversity_makes_first_tokens_differ():
    groups = diverse_beam_search(smallest("gpt2"), PROMPT, LIMITS, 4, 4, diversity=1000.0)
    assert len({group[0].ids[0] for group in groups}) == 4


@pytest.mark.parametrize("setting", [(4, 3, 0.5), (2, 4, 0.5), (4, 0, 0.5), (4, 2, -1.0), (4, 2, math.inf)], ids=str)
def test_what_makes_no_groups_is_refused(setting):
    width, groups, diversity = setting
    with pytest.raises(UsageError):
        diverse_beam_search(smallest("gpt2"), PROMPT, LIMITS, width, groups, diversity=diversity)
