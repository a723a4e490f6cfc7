"""Tokenizers, tiny models and rows for the tests of the objectives that corrupt text."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from orrery.families import load_family
from orrery.models.dropout import without_dropout
from orrery.models.initialise import initialise
from orrery.objectives import OBJECTIVES, Objective
from orrery.objectives._contracts import own_modules
from orrery.text.special import framed_tokenizer
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate

TEXT = "The cat sat on the mat. A dog ran after the cat! Did it rain? It did, and the mat was wet.\n" * 3


@lru_cache
def tokenizer_of(frame: str | None, kind: str = "byte_bpe") -> Tokenizer:
    trained = train_tokenizer(kind, [TEXT], 300 if kind == "byte_bpe" else None)
    return trained if frame is None else framed_tokenizer(trained, frame)


def tiny(family: str, tokenizer: Tokenizer, **config: Any) -> nn.Module:
    """Return a tiny model in float64 without dropout, and with weights that are not near zero."""
    rules = load_family(family)
    spec = without_dropout(rules.spec({**rules.TINY, "vocab_size": tokenizer.size, **config}))
    model = spec.build().double()
    initialise(model, depth=2, seed=3, std=0.2)
    return model


def bound(name: str, model: nn.Module, tokenizer: Tokenizer | None, **settings: Any) -> Objective:
    objective = OBJECTIVES.find(name)(**settings)
    objective.bind(model.spec, tokenizer)
    return objective


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def text_rows(tokenizer: Tokenizer, rows: int, length: int, seed: int = 0) -> Tensor:
    """Return rows of ordinary tokens, all equally likely."""
    ordinary = torch.tensor([id for id in range(tokenizer.size) if id not in tokenizer.control])
    return ordinary[torch.randint(len(ordinary), (rows, length), generator=generator(seed))]


def gradient(model: nn.Module, objective: Objective, batch: dict[str, Tensor], micro_batch: int | None) -> dict:
    """Return the loss and the gradient of a prepared batch, of the objective's own modules too."""
    torch.manual_seed(5)
    whole = nn.ModuleDict({"model": model, "own": nn.ModuleDict(own_modules(objective, model)).double()})
    how = {"micro_batch": micro_batch, "seed": (0, 0), "ranks": Alone(), "learner": whole}
    loss = accumulate(model, objective, batch, precision=Precision("float32", "plain", "cpu", 1), **how)
    gradients = {name: p.grad.clone() for name, p in whole.named_parameters() if p.grad is not None}
    whole.zero_grad()
    return {"loss": torch.tensor(loss.loss, dtype=torch.float64), **gradients}


def split_deviation(model: nn.Module, objective: Objective, batch: dict[str, Tensor]) -> float:
    """Return how far loss and gradients in pieces of one row are from those of the whole batch."""
    whole, split = gradient(model, objective, batch, None), gradient(model, objective, batch, 1)
    assert whole.keys() == split.keys()
    assert len(whole) > 5
    return max(float((whole[name] - split[name]).abs().max()) for name in whole)
