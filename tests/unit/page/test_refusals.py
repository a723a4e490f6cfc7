"""What no page can be of is refused as a trace refuses it."""

import pytest

import orrery
from orrery.errors import OrreryError, UsageError
from see_models import see_models

CAT, DOG = "the cat", "a dog"


@pytest.fixture(scope="module")
def models():
    return see_models()


@pytest.mark.parametrize(
    ("family", "given"),
    [
        ("t5", ((CAT, DOG), DOG)),
        ("t5", ((CAT, DOG, CAT),)),
        ("t5", ([CAT, DOG],)),
        ("gpt2", ((CAT, DOG),)),
        ("gpt2", (CAT, DOG)),
        *(
            (family, (value,))
            for family in ("gpt2", "t5")
            for value in (3, None, b"ab", 1.5, True, {"a": 1}, [], [True], [[5]])
        ),
    ],
)
def test_what_is_no_text_and_no_pair_is_refused(models, family, given):
    with pytest.raises(OrreryError):
        orrery.see(models[family], *given)
    if len(given) == 1 and not isinstance(given[0], tuple):
        with pytest.raises(UsageError):
            models[family].trace(given[0])
