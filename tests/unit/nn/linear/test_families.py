"""Every language model of a matrix memory is under the laws of mixers with a state."""

import pytest
import torch

from orrery.families import load_family
from orrery.laws import cache, packing, padding, recurrence, sight

FAMILIES = ["linear_transformer", "retnet", "gla", "gated_deltanet", "based"]
LAWS = {"recurrence": recurrence, "cache": cache, "packing": packing, "padding": padding, "sight": sight}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("law", LAWS)
def test_a_family_keeps_the_law(family, law):
    evidence = list(LAWS[law].check(family))
    assert evidence
    assert [e for e in evidence if not e.passed] == []


def test_states_stand_beside_keys_that_grow_or_lie_in_pages():
    rules = load_family("based")
    model = rules.spec({**rules.TINY, "sliding_window": 2 * cache.CAPACITY, "max_position_embeddings": 80}).build(0)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.normal_(std=0.3)
    kinds = cache.kinds(model)
    assert list(kinds) == ["growing beside recurrent", "paged beside recurrent"]
    for kind in kinds.values():
        assert cache.token_by_token(model, kind) <= 1e-9
        assert cache.ragged(model, kind) <= 1e-9
        assert cache.rearranged(model, kind, forgets=False) <= 1e-9
