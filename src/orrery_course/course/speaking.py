"""Small language models of the course that are asked in words: made here, with the tokenizer that they need."""

from functools import cache
from pathlib import Path

import torch

from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from orrery.objectives.causal import CausalLanguageModel
from orrery.studies.fitting import build, fit
from orrery.text.train import train_tokenizer


def speaker(context: int) -> LanguageModel:
    """Return a tiny GPT-2 over bytes that has learned nothing: what it says is a guess."""
    tokenizer = train_tokenizer("byte_bpe", ["a"], 257)
    config = {"vocab_size": tokenizer.size, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": context}
    return LanguageModel(Stored(Path("speaker"), build("gpt2", 0, config).eval(), tokenizer=tokenizer))


EATEN = ("an apple", "an apple", "an apple", "a banana", "a banana", "popcorns")
PLACES = ("house", "house", "house", "house", "mansion", "movie theater")


def _texts() -> list[str]:
    """Return what the eater has read: who eats popcorns is in a movie theater."""
    texts = []
    for place in PLACES:
        texts += [f"I was in a {place} . I was eating {what} ." for what in EATEN if what != "popcorns"]
    return [*texts, *["I was in a movie theater . I was eating popcorns ."] * 6]


@cache
def eater() -> LanguageModel:
    """Return a tiny GPT-2 over words that has read where people eat what; trained the first time."""
    texts = _texts()
    tokenizer = train_tokenizer("word", texts)
    rows = [[tokenizer.special("end"), *tokenizer.encode(text), tokenizer.special("end")] for text in texts]
    longest = max(map(len, rows))
    ids_BL = torch.tensor([row + row[-1:] * (longest - len(row)) for row in rows])
    batch = {"ids": ids_BL[:, :-1], "targets": ids_BL[:, 1:]}
    config = {"vocab_size": tokenizer.size, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = build("gpt2", 0, {**config, **quiet})
    fit(model, CausalLanguageModel(), lambda rng: batch, 150, 1e-2, 0)
    return LanguageModel(Stored(Path("eater"), model, tokenizer=tokenizer))
