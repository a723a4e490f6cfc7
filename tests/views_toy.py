"""Passes of tiny random models of several families, for the views that show them."""

from pathlib import Path

import torch

from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.reading.read import Stored
from orrery.text import Tokenizer
from orrery.text.train import train_tokenizer
from orrery.views._inside import Inside
from orrery.views._view import Subject
from tiny_models import randomised

TEXT = "the cat sat on the mat, the dog sat on the log\n"
TOKENIZER = train_tokenizer("byte_bpe", [TEXT] * 3, 290)


def subject_of(
    family: str, tokenizer: Tokenizer = TOKENIZER, dtype: torch.dtype = torch.float32, text: str = "the cat sat on"
) -> Subject:
    """Return one pass of the smallest model of a family, random in every parameter."""
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": tokenizer.size}
    model = randomised(rules.spec(config).build(0).to(dtype).eval())
    lm = LanguageModel(Stored(Path("tiny"), model, family, config, tokenizer=tokenizer))
    given = {"source": text, "target": "the dog"} if model.spec.reads_source else {"text": text}
    return Subject(lm, Inside(lm, given))
