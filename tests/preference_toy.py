"""Pairs of replies as ids, tiny decoders in float64, and files of preferences."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from objectives_toy import tiny, tokenizer_of

ROWS = [
    (([5, 6, 7], [20, 21, 2]), ([5, 6, 7], [30, 31, 32, 33, 2])),
    (([8, 9], [22, 2]), ([8, 9], [34, 35, 2])),
    (([10, 11, 12, 13], [23, 24, 25, 26, 2]), ([10, 11, 12, 13], [36, 2])),
    (([14], [27, 28, 2]), ([14], [37, 2])),
]
"""Prompts with a reply that was chosen and one that was rejected."""


def fields(rows: Any = ROWS, width: int | None = None) -> dict[str, Tensor]:
    """Return the fields of a batch of pairs."""
    width = width or max(len(prompt) + len(reply) for row in rows for prompt, reply in row)
    ids = torch.zeros((len(rows), 2, width), dtype=torch.long)
    real, said = torch.zeros_like(ids, dtype=torch.bool), torch.zeros_like(ids, dtype=torch.bool)
    for number, row in enumerate(rows):
        for place, (prompt, reply) in enumerate(row):
            end = len(prompt) + len(reply)
            ids[number, place, :end] = torch.tensor(prompt + reply)
            real[number, place, :end] = True
            said[number, place, len(prompt) : end] = True
    batch = {"ids": ids, "real": real, "reply": said, "margin": torch.zeros(len(rows))}
    return {**batch, "desirable": torch.arange(len(rows)) % 3 != 1}


def decoder(family: str = "llama", **config: Any) -> nn.Module:
    """Return a tiny decoder in float64."""
    return tiny(family, tokenizer_of(None), **config).eval()


def moved(model: nn.Module, size: float = 0.05, seed: int = 5) -> nn.Module:
    """Move every parameter that learns, as a step would."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(size * torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype))
    return model


def written(file: Path, rows: list[dict[str, Any]]) -> str:
    """Write rows as JSON lines, and return the name of the file."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)
