"""Answers that are known beforehand: a model that writes what a test wants it to write."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from orrery.generation.samplers import Sampler
from orrery.serving import requests
from orrery.serving.background import RunningServer


def write(monkeypatch: pytest.MonkeyPatch, toy: RunningServer, text: str, end: str | None = "<|im_end|>") -> None:
    """Let every answer of a server be a text, whose control tokens are spelt out, and then a token that ends it."""
    tokenizer = toy.served.lm.tokenizer
    ids = tokenizer.encode(text, special=True)
    if end is not None:
        ids.append(tokenizer.encode(end, special=True)[0])

    def scripted(*_: object) -> Sampler:
        left = iter(ids)

        def pick(logits_BV: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
            return torch.tensor([next(left) for _ in range(len(logits_BV))])

        return Sampler((), pick)

    monkeypatch.setattr(requests, "sampler_for", scripted)
