"""What no page can be of is refused as a trace refuses it."""

from pathlib import Path

import pytest

import orrery
from orrery.errors import OrreryError, UsageError
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.reading.read import Stored
from orrery.text.special import framed_tokenizer
from tiny_models import TOKENIZER, randomised

CAT, DOG = "the cat", "a dog"


@pytest.fixture(scope="module")
def models():
    def made(family, tokenizer):
        rules = load_family(family)
        model = randomised(rules.spec({**rules.TINY, "vocab_size": tokenizer.size}).build(0).eval())
        return LanguageModel(Stored(Path("tiny"), model, tokenizer=tokenizer))

    return {"t5": made("t5", framed_tokenizer(TOKENIZER, "t5")), "gpt2": made("gpt2", TOKENIZER)}


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
