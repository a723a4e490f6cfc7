"""What a page may be of: everything that a trace may be of."""

import pytest

import orrery
from orrery.page.see import given_of
from see_models import see_models

CAT, DOG = "the cat", "a dog"


@pytest.fixture(scope="module")
def models():
    return see_models()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (((CAT, DOG),), {"source": CAT, "target": DOG}),
        ((CAT, DOG), {"source": CAT, "target": DOG}),
        ((CAT,), {"source": CAT, "target": ""}),
        (((CAT, ""),), {"source": CAT, "target": ""}),
        (([5, 6], DOG), {"source": [5, 6], "target": DOG}),
        (([5, 6],), {"source": [5, 6], "target": ""}),
        ((([5, 6], DOG),), {"source": [5, 6], "target": DOG}),
        (((5, 6),), {"source": (5, 6), "target": ""}),
    ],
)
def test_a_pair_is_a_source_and_its_target(models, given, told):
    assert given_of(models["t5"], *given) == told
    assert orrery.see(models["t5"], *given).html()


@pytest.mark.parametrize("given", [CAT, [5, 6], (5, 6), range(3, 6)])
def test_a_text_or_ids_are_read_as_a_trace_reads_them(models, given):
    assert given_of(models["gpt2"], given) == {"text": given}
    assert orrery.see(models["gpt2"], given).html()
