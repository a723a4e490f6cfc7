"""The models that pages are of in tests: one that writes, and one that reads and writes."""

from pathlib import Path

from orrery.exchange.reading.read import Stored
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.text.special import framed_tokenizer
from tiny_models import TOKENIZER, randomised


def see_models() -> dict[str, LanguageModel]:
    """Return a T5 and a GPT-2, by family."""

    def made(family, tokenizer):
        rules = load_family(family)
        model = randomised(rules.spec({**rules.TINY, "vocab_size": tokenizer.size}).build(0).eval())
        return LanguageModel(Stored(Path("tiny"), model, tokenizer=tokenizer))

    return {"t5": made("t5", framed_tokenizer(TOKENIZER, "t5")), "gpt2": made("gpt2", TOKENIZER)}
