"""Matrix memories as language models: all forms are one recurrence (``parity/test_every_law.py``: the other laws)."""

import pytest
import torch

from orrery.families import load_family
from orrery.laws import cache, recurrence

FAMILIES = ["linear_transformer", "retnet", "gla", "gated_deltanet", "based"]


@pytest.mark.parametrize("family", FAMILIES)
def test_all_forms_of_a_family_are_one_recurrence(family):
    evidence = list(recurrence.check(family))
    assert {form for form in ("parallel", "chunked") for e in evidence if form in e.name} == {"parallel", "chunked"}
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
