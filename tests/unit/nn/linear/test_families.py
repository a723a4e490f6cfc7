"""Every language model of a matrix memory is under the laws of mixers with a state."""

import pytest

from orrery.laws import cache, packing, padding, recurrence, sight

FAMILIES = ["linear_transformer", "retnet", "gla", "gated_deltanet", "based"]
LAWS = {"recurrence": recurrence, "cache": cache, "packing": packing, "padding": padding, "sight": sight}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("law", LAWS)
def test_a_family_keeps_the_law(family, law):
    evidence = list(LAWS[law].check(family))
    assert evidence
    assert [e for e in evidence if not e.passed] == []
