"""A small BERT that fills in the words of sentences about fruit and about devices: two examples look into it."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from orrery.objectives.causal import CausalLanguageModel
from orrery.studies.fitting import build, fit
from orrery_course.labs.contextual import CONFIG, RATE, SentenceRows, sentences

STEPS = 250


@cache
def reader() -> tuple[Any, tuple[str, ...]]:
    """Return the model, trained the first time, and its vocabulary."""
    corpus = SentenceRows.of(sentences())
    model = build("bert", 0, {**CONFIG, "vocab_size": len(corpus.words)})
    fit(model, CausalLanguageModel(), corpus, STEPS, RATE, 0)
    return model, corpus.words


def ids(text: str) -> Tensor:
    """Return the ids of a sentence of those words, one row."""
    _, words = reader()
    return torch.tensor([[words.index(word) for word in text.split()]])
