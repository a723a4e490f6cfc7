"""Passes of tiny random models of several families, for the views that show them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from orrery.exchange.reading.read import Stored
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject
from orrery.text import Tokenizer
from orrery.text.train import train_tokenizer
from tiny_models import prepared_for, randomised

TEXT = "the cat sat on the mat, the dog sat on the log\n"
TOKENIZER = train_tokenizer("byte_bpe", [TEXT] * 3, 290)


PIXELS = torch.randint(0, 256, (20, 30, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))


def language_model_of(
    family: str, tokenizer: Tokenizer | None = TOKENIZER, dtype: torch.dtype = torch.float32, **config: object
) -> LanguageModel:
    """Return the smallest model of a family, random in every parameter, with a tokenizer where it has a vocabulary."""
    rules = load_family(family)
    config = {**_with_vocabulary(rules.TINY, (tokenizer or TOKENIZER).size), **config}
    model = randomised(rules.spec(config).build(0).to(dtype).eval())
    known = tokenizer if model.spec.vocabulary or model.spec.target_vocabulary else None
    stored = Stored(Path("tiny"), model, family, config, tokenizer=known, pictures=prepared_for(model))
    return LanguageModel(stored)


def subject_of(
    family: str, tokenizer: Tokenizer = TOKENIZER, dtype: torch.dtype = torch.float32, text: str = "the cat sat on"
) -> ViewSubject:
    """Return one pass of the smallest model of a family, random in every parameter."""
    lm = language_model_of(family, tokenizer, dtype)
    return ViewSubject(lm, Inside(lm, given_to(lm, text)))


def given_to(lm: LanguageModel, text: str = "the cat sat on", image: object = PIXELS) -> dict[str, Any]:
    """Return what a model reads: a text or an image, and what was written beside it."""
    spec = lm.model.spec
    name = "image" if spec.vocabulary is None else "source" if spec.reads_source else "text"
    return {name: image if name == "image" else text, **({"target": "the dog"} if spec.reads_pair else {})}


def _with_vocabulary(config: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return a configuration with this many tokens, where it tells any, or one of its sides does."""
    sides = {key: _with_vocabulary(value, size) for key, value in config.items() if isinstance(value, Mapping)}
    return {**config, **sides, **({"vocab_size": size} if "vocab_size" in config else {})}
