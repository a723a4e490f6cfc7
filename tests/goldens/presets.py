"""Golden outputs of architectures without public weights: PaLM, Gopher and LaMDA by their papers' formulas."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.laws import questions
from tests.goldens.formulas import VOCABULARY, Weights

WIDTH, HEADS, CHANNELS, LAYERS = 16, 2, 6, 2
SHAPE = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "head_width": CHANNELS, "vocabulary": VOCABULARY}


def matrix(w: Weights, name: str, x: Tensor, outputs: int) -> Tensor:
    return x @ w.take(f"{name}.weight", outputs, x.shape[-1]).T


def layer_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * w.take(f"{name}.weight", WIDTH)


def rms_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * w.take(f"{name}.weight", WIDTH)


def heads(x: Tensor) -> list[Tensor]:
    return list(x.split(CHANNELS, -1))


def attend(scores: Tensor, v: Tensor) -> Tensor:
    """Mix values, none of them from behind."""
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v


def turned(x: Tensor) -> Tensor:
    """Turn channel i with channel ``i + C / 2`` by ``position * 10,000^(-2i/C)``."""
    half = CHANNELS // 2
    rates = 10_000.0 ** (-2 * torch.arange(half, dtype=torch.float64) / CHANNELS)
    angles = torch.arange(len(x), dtype=torch.float64)[:, None] * rates
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


def palm(w: Weights, ids: Tensor) -> Tensor:
    """Chowdhery et al. 2022, section 2: ``x + attention(norm(x)) + mlp(norm(x))``, one key and value for all heads."""
    table = w.take("embed.token.weight", VOCABULARY, WIDTH)
    x = table[ids]
    for n in range(LAYERS):
        y, name = layer_norm(w, f"stack.blocks.{n}.parallel.pre", x), f"stack.blocks.{n}.parallel.branch"
        q = heads(matrix(w, f"{name}.attention.q", y, HEADS * CHANNELS))
        k, v = (matrix(w, f"{name}.attention.{part}", y, CHANNELS) for part in "kv")
        mixed = torch.cat([attend(turned(one) @ turned(k).T / math.sqrt(CHANNELS), v) for one in q], -1)
        gate, up = (matrix(w, f"{name}.feed_forward.{part}", y, 4 * WIDTH) for part in ("gate", "up"))
        down = matrix(w, f"{name}.feed_forward.down", gate * torch.sigmoid(gate) * up, WIDTH)
        x = x + matrix(w, f"{name}.attention.out", mixed, WIDTH) + down
    return layer_norm(w, "stack.final", x) @ table.T / math.sqrt(WIDTH)


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def sequential(scored: Callable[..., list[Tensor]], network: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a pre-norm decoder with RMSNorm, its head the table, from its scores and its feed-forward network."""

    def run(w: Weights, ids: Tensor) -> Tensor:
        table = w.take("embed.token.weight", VOCABULARY, WIDTH)
        x = table[ids]
        for n in range(LAYERS):
            name = f"stack.blocks.{n}.attention"
            y = rms_norm(w, f"{name}.pre", x)
            q, k, v = (heads(matrix(w, f"{name}.branch.{part}", y, HEADS * CHANNELS)) for part in "qkv")
            mixed = [attend(s, own) for s, own in zip(scored(w, f"{name}.branch", q, k), v, strict=True)]
            x = x + matrix(w, f"{name}.branch.out", torch.cat(mixed, -1), WIDTH)
            name = f"stack.blocks.{n}.feed_forward"
            x = x + network(w, f"{name}.branch", rms_norm(w, f"{name}.pre", x))
        return rms_norm(w, "stack.final", x) @ table.T

    return run


def transformer_xl(w: Weights, name: str, q: list[Tensor], k: list[Tensor]) -> list[Tensor]:
    """Dai et al. 2019, section 3.3: ``(q + u) . k + (q + v) . W r_(i - j)``, over the root of the channels."""
    u = w.take(f"{name}.terms.content_bias.weight", HEADS, CHANNELS)
    v = w.take(f"{name}.terms.content_to_position.query.weight", HEADS, CHANNELS)
    rates = 10_000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
    segments = []
    for h in range(HEADS):
        rows = []
        for i in range(len(q[h])):
            angles = (i - torch.arange(len(q[h]), dtype=torch.float64)).clamp(min=0)[:, None] * rates
            r = torch.cat([angles.sin(), angles.cos()], -1)
            projected = matrix(w, f"{name}.terms.content_to_position.projection.linear", r, HEADS * CHANNELS)
            rows.append(k[h] @ (q[h][i] + u[h]) + heads(projected)[h] @ (q[h][i] + v[h]))
        segments.append(torch.stack(rows) / math.sqrt(CHANNELS))
    return segments


def biased(w: Weights, name: str, q: list[Tensor], k: list[Tensor]) -> list[Tensor]:
    """Raffel et al. 2020, section 2.1: a number for each distance, the same in all layers; 14 tokens have one each."""
    table = w.take("stack.positions.relative.table.weight", 32, HEADS)
    places = torch.arange(len(q[0]))
    behind = (places[:, None] - places[None]).clamp(min=0)
    return [q[h] @ k[h].T / math.sqrt(CHANNELS) + table[behind, h] for h in range(HEADS)]


def plain(w: Weights, name: str, x: Tensor) -> Tensor:
    return matrix(w, f"{name}.down", gelu(matrix(w, f"{name}.up", x, 4 * WIDTH)), WIDTH)


def gated(w: Weights, name: str, x: Tensor) -> Tensor:
    gate, up = (matrix(w, f"{name}.{part}", x, 20) for part in ("gate", "up"))
    return matrix(w, f"{name}.down", gelu(gate) * up, WIDTH)


FORMULAS: dict[str, tuple[dict[str, int], Callable[..., Tensor]]] = {
    "palm": ({**SHAPE, "context": 20}, palm),
    "gopher": ({**SHAPE, "context": 20}, sequential(transformer_xl, plain)),
    "lamda": ({**SHAPE, "context": 20, "hidden": 20}, sequential(biased, gated)),
}


def cases() -> list[dict[str, Any]]:
    """Return the golden models."""
    return [
        {"name": name, "by": "the formulas", "sizes": sizes, "found": answered(formula)}
        for name, (sizes, formula) in FORMULAS.items()
    ]


def answered(formula: Callable[..., Tensor]) -> dict[str, Any]:
    """Return the sums, the loss, and the gradients' norm and slope."""
    w, rows = Weights(), questions.texts(VOCABULARY)
    logits = [formula(w, row) for row in rows]
    numbers = questions.summary([[x.detach()] for x in logits])
    loss = F.cross_entropy(torch.cat([x[:-1] for x in logits]), torch.cat([row[1:] for row in rows]))
    loss.backward()
    return {**numbers, "loss": float(loss.detach()), **questions.slope({name: x.grad for name, x in w.items()})}
