"""Head roles: heads made to play a role get one, all others what the definition says; by hand on a text of repeats."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.attribution.head_roles import ROLES, induction_scores
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest

IDS = torch.tensor([[5, 6, 7, 5, 6, 8, 7, 5], [9, 9, 3, 3, 9, 1, 2, 4]])


def pattern_of(wanted):
    """Return a pattern in which each query gives all of its weight to the keys that are wanted, or else to itself."""

    def edit(value, key):
        pattern = torch.zeros_like(value)
        for row, ids in enumerate(IDS.tolist()):
            for query in range(len(ids)):
                keys = wanted(ids, query) or [query]
                pattern[row, :, query, keys] = 1 / len(keys)
        return pattern

    return edit


def earlier(ids, query):
    return [key for key in range(query) if ids[key] == ids[query]]


WANTED = {
    "previous_token": lambda ids, query: [query - 1] if query else [],
    "induction": lambda ids, query: [key + 1 for key in earlier(ids, query)],
    "duplicate_token": earlier,
    "first_token": lambda ids, query: [0],
}


@pytest.mark.parametrize("role", WANTED)
def test_a_head_that_plays_a_role_gets_one(role):
    model = smallest("gpt2")
    roles = trace(model, IDS, edit={"blocks.0.attention.pattern": pattern_of(WANTED[role])}).head_roles()
    assert roles.attentions == ["blocks.0.attention", "blocks.1.attention"]
    assert set(roles.score_NH) == set(ROLES)
    torch.testing.assert_close(roles[role][0], torch.ones(3, dtype=torch.float64))
    assert bool((roles[role][1] < 0.9).all())
    assert [name for name, _ in roles.top(role, 3)] == [f"blocks.0.attention.head.{h}" for h in range(3)]


@pytest.mark.parametrize("family", ["gpt2", "t5", "gpt_oss"])
def test_scores_are_those_of_the_definition(family):
    model = smallest(family)
    inputs = [IDS] if family != "t5" else [IDS.flip(0), IDS]
    seen = trace(model, *inputs)
    roles = seen.head_roles()
    pattern_BHLL = seen["blocks.1.attention.pattern"]
    for role, wanted in WANTED.items():
        for head in range(pattern_BHLL.shape[1]):
            weights = []
            for row, ids in enumerate(IDS.tolist()):
                for query in range(role == "first_token", len(ids)):
                    keys = wanted(ids, query)
                    if keys:
                        weights.append(float(pattern_BHLL[row, head, query, keys].sum()))
            assert float(roles[role][1, head]) == pytest.approx(sum(weights) / len(weights), abs=1e-12)
    entropies, distances = [], []
    for row in pattern_BHLL[:, 0].flatten(0, 1).tolist():
        query = len(entropies) % 8
        shares = [weight / sum(row) for weight in row if weight > 0]
        entropies.append(-sum(p * math.log(p) for p in shares) / math.log(len(shares)) if len(shares) > 1 else None)
        apart = [abs(key - query) for key, weight in enumerate(row) if weight > 0]
        distances.append(sum(p * d for p, d in zip(shares, apart, strict=True)) / max(apart) if max(apart) else None)
    for role, values in (("entropy", entropies), ("distance", distances)):
        counted = [value for value in values if value is not None]
        assert float(roles[role][1, 0]) == pytest.approx(sum(counted) / len(counted), abs=1e-12)
    assert all(bool(((score >= 0) & (score <= 1)).all()) for score in roles.score_NH.values())


def test_padding_takes_no_part():
    model, ids = smallest("gpt2"), torch.tensor([[5, 6, 5, 6, 5]])
    alone = trace(model, ids).head_roles()
    for left in (True, False):
        padded = torch.nn.functional.pad(ids, (2, 0) if left else (0, 2))
        real = torch.nn.functional.pad(torch.ones_like(ids, dtype=torch.bool), (2, 0) if left else (0, 2))
        roles = trace(model, padded, real=real).head_roles()
        for role in ROLES:
            torch.testing.assert_close(roles[role], alone[role])


def test_a_text_without_repeats_has_no_induction():
    roles = trace(smallest("gpt2"), torch.arange(7)[None]).head_roles()
    assert bool(roles["induction"].isnan().all())
    assert bool(roles["duplicate_token"].isnan().all())
    assert not bool(roles["previous_token"].isnan().any())


def test_the_reader_and_images_have_heads_too():
    seen = trace(smallest("t5"), IDS, IDS[:, :3])
    assert seen.head_roles("encoder.blocks.*.attention").attentions[0] == "encoder.blocks.0.attention"
    model = smallest("vit")
    roles = trace(model, *inputs_for(model)).head_roles()
    assert bool(roles["duplicate_token"].isnan().all())
    assert not bool(roles["entropy"].isnan().any())


def test_induction_is_measured_on_repeated_random_tokens():
    model = smallest("llama")
    keys, score_NH = induction_scores(model, 3, length=8, rows=2)
    assert keys == ["blocks.0.attention", "blocks.1.attention"]
    half = torch.randint(61, (2, 8), generator=torch.Generator().manual_seed(3))
    pattern_BHLL = trace(model, torch.cat([half, half], 1))["blocks.1.attention.pattern"]
    expected_H = torch.stack([pattern_BHLL[:, :, 8 + i, i + 1] for i in range(8)]).mean((0, 1))
    torch.testing.assert_close(score_NH[1], expected_H.float())
    assert torch.equal(score_NH, induction_scores(model, 3, length=8, rows=2)[1])
    assert not torch.equal(score_NH, induction_scores(model, 4, length=8, rows=2)[1])


def test_what_has_no_roles_is_refused():
    with pytest.raises(UsageError, match="no pattern of"):
        trace(smallest("lstm"), IDS).head_roles()
    for family in ("bert", "t5"):
        with pytest.raises(UsageError, match="only a decoder"):
            induction_scores(smallest(family))
    with pytest.raises(UsageError, match="no role is called 'copy'"):
        trace(smallest("gpt2"), IDS).head_roles()["copy"]
