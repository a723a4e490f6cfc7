"""Golden outputs of language models whose state is a matrix: their papers' equations, one token and head at a time."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.goldens.weights import VOCABULARY, Formula, Weights

WIDTH, HIDDEN, HEADS, KEY, VALUE, EPS = 16, 24, 2, 4, 8, 0.01
Branch = Callable[[Weights, str, list[Tensor]], list[Tensor]]


def rms(w: Weights, name: str, x: Tensor, eps: float = EPS) -> Tensor:
    """Return the vector brought to length sqrt(D), with a gain."""
    return x / torch.sqrt((x * x).mean() + eps) * w.take(f"{name}.weight", len(x))


def matrix(w: Weights, name: str, x: Tensor, outputs: int) -> Tensor:
    """Return ``W x``."""
    return w.linear(name, x, outputs, bias=False)


def language_model(mixers: list[tuple[str, Branch]], head: str = "head") -> Formula:
    """Return Llama's blocks around these mixers, each with the name of its residual."""

    def run(w: Weights, ids: Tensor) -> Tensor:
        xs = w.words(ids, WIDTH)
        for depth, (role, mixer) in enumerate(mixers):
            name = f"stack.blocks.{depth}"
            added = mixer(w, f"{name}.{role}.branch", [rms(w, f"{name}.{role}.pre", x) for x in xs])
            xs = [x + y for x, y in zip(xs, added, strict=True)]
            for t, x in enumerate(xs):
                normed, branch = rms(w, f"{name}.feed_forward.pre", x), f"{name}.feed_forward.branch"
                gate, up = (matrix(w, f"{branch}.{part}", normed, HIDDEN) for part in ("gate", "up"))
                xs[t] = x + matrix(w, f"{branch}.down", F.silu(gate) * up, WIDTH)
        logits = [matrix(w, f"{head}.vocabulary", rms(w, "stack.final", x), VOCABULARY) for x in xs]
        return torch.stack(logits)

    return run


def cut(x: Tensor, head: int) -> Tensor:
    """Return one head of a vector."""
    return x.chunk(HEADS)[head]


def weighted(weight: Callable[[Tensor, Tensor], Tensor], key: int) -> Branch:
    """Return attention with these weights in place of the softmax's, divided by their sum and 1e-6."""

    def run(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
        q, k = ([matrix(w, f"{name}.{part}", x, HEADS * key) for x in xs] for part in "qk")
        v = [matrix(w, f"{name}.v", x, HEADS * VALUE) for x in xs]
        said = []
        for t in range(len(xs)):
            heads = []
            for h in range(HEADS):
                weights = [weight(cut(q[t], h), cut(k[s], h)) for s in range(t + 1)]
                mixed = sum(a * cut(v[s], h) for s, a in enumerate(weights))
                heads.append(mixed / (sum(weights) + 1e-6))
            said.append(matrix(w, f"{name}.out", torch.cat(heads), WIDTH))
        return said

    return run


def positive(q: Tensor, k: Tensor) -> Tensor:
    """Katharopoulos et al. 2020, equation 7."""
    return (torch.where(q > 0, q + 1, q.exp()) * torch.where(k > 0, k + 1, k.exp())).sum()


def expanded(q: Tensor, k: Tensor) -> Tensor:
    """Arora et al. 2024, section 4.1: the exponential up to its second power."""
    s = q @ k / math.sqrt(len(q))
    return 1 + s + s * s / 2


def turned(x: Tensor, place: int) -> Tensor:
    """Return the vector with channel i turned with channel i + C / 2."""
    half = len(x) // 2
    angle = torch.tensor([place / 10_000 ** (2 * i / len(x)) for i in range(half)], dtype=torch.float64)
    a, b = x[:half], x[half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])


def window(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Attention with rotary positions over the last five tokens."""
    q, k, v = ([matrix(w, f"{name}.{part}", x, WIDTH) for x in xs] for part in "qkv")
    said = []
    for t in range(len(xs)):
        seen, heads = range(max(0, t - 4), t + 1), []
        for h in range(HEADS):
            scores = [turned(cut(q[t], h), t) @ turned(cut(k[s], h), s) / math.sqrt(WIDTH // HEADS) for s in seen]
            pattern = torch.stack(scores).softmax(0)
            heads.append(sum(a * cut(v[s], h) for a, s in zip(pattern, seen, strict=True)))
        said.append(matrix(w, f"{name}.out", torch.cat(heads), WIDTH))
    return said


def retention(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Sun et al. 2023, equations 5 to 8, in the parallel form, with a norm of each head."""
    q, k = ([matrix(w, f"{name}.{part}", x, HEADS * KEY) for x in xs] for part in "qk")
    v, gate = ([matrix(w, f"{name}.{part}", x, HEADS * VALUE) for x in xs] for part in ("v", "gate"))
    said = []
    for t in range(len(xs)):
        heads = []
        for h in range(HEADS):
            gamma, mixed = 1 - 2 ** (-5 - h), torch.zeros(VALUE, dtype=torch.float64)
            for s in range(t + 1):
                score = turned(cut(q[t], h), t) @ turned(cut(k[s], h), s) / math.sqrt(KEY)
                mixed = mixed + gamma ** (t - s) * score * cut(v[s], h)
            centred = mixed - mixed.mean()
            heads.append(centred / torch.sqrt((centred * centred).mean() + EPS))
        said.append(matrix(w, f"{name}.out", torch.cat(heads) * F.silu(gate[t]), WIDTH))
    return said


def spoken(w: Weights, name: str, read: list[Tensor], x: Tensor) -> Tensor:
    """Return the output of what the heads read: a norm of each, and a gate."""
    normed = [rms(w, f"{name}.norm.norm", y) for y in read]
    gate = matrix(w, f"{name}.gate", x, HEADS * VALUE)
    return matrix(w, f"{name}.out", torch.cat(normed) * F.silu(gate), WIDTH)


def gated(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Yang et al. 2024, section 4.4: a memory whose channels forget."""
    states, said = [torch.zeros(KEY, VALUE, dtype=torch.float64)] * HEADS, []
    for x in xs:
        q, k = (matrix(w, f"{name}.{part}", x, HEADS * KEY) for part in "qk")
        v = matrix(w, f"{name}.v", x, HEADS * VALUE)
        kept = torch.sigmoid(w.linear(f"{name}.forget", matrix(w, f"{name}.narrow", x, 4), HEADS * KEY)) ** (1 / 16)
        states = [
            torch.diag(cut(kept, h)) @ state + torch.outer(cut(k, h), cut(v, h)) for h, state in enumerate(states)
        ]
        said.append(spoken(w, name, [cut(q, h) @ state / math.sqrt(KEY) for h, state in enumerate(states)], x))
    return said


def corrected(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Yang, Kautz and Hatamizadeh 2025, equation 10 and section 3.4, with convolutions of three places."""
    width = HEADS * (2 * KEY + VALUE)
    inputs = [
        torch.cat([matrix(w, f"{name}.{part}", x, HEADS * (VALUE if part == "v" else KEY)) for part in "qkv"])
        for x in xs
    ]
    short = w.take(f"{name}.short.weight", width, 1, 3)[:, 0]
    states, said = [torch.zeros(KEY, VALUE, dtype=torch.float64)] * HEADS, []
    for t, x in enumerate(xs):
        mixed = F.silu(sum(short[:, 2 - ago] * inputs[t - ago] for ago in range(3) if t >= ago))
        q, k, v = mixed.split([HEADS * KEY, HEADS * KEY, HEADS * VALUE])
        share = torch.sigmoid(matrix(w, f"{name}.write", x, HEADS))
        pace = w.take(f"{name}.forget.pace", HEADS).exp()
        step = F.softplus(matrix(w, f"{name}.forget", x, HEADS) + w.take(f"{name}.forget.bias", HEADS))
        kept, read = torch.exp(-pace * step), []
        for h, state in enumerate(states):
            unit_q, unit_k = (y / torch.sqrt(y @ y + 1e-6) for y in (cut(q, h), cut(k, h)))
            erased = torch.eye(KEY, dtype=torch.float64) - share[h] * torch.outer(unit_k, unit_k)
            state = kept[h] * erased @ state + share[h] * torch.outer(unit_k, cut(v, h))
            states = [*states[:h], state, *states[h + 1 :]]
            read.append(unit_q @ state / math.sqrt(KEY))
        said.append(spoken(w, name, read, x))
    return said


CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_heads": HEADS,
    "rms_norm_eps": EPS,
    "max_position_embeddings": 48,
}
WIDE = {**CONFIG, "key_head_dim": KEY, "value_head_dim": VALUE}
FORMULAS: dict[str, list[tuple[str, dict[str, Any], Formula]]] = {
    "linear_transformer": [("equation 7", WIDE, language_model([("mixer", weighted(positive, KEY))] * 2))],
    "retnet": [("equations 5 to 8", WIDE, language_model([("mixer", retention)] * 2))],
    "gla": [("section 4.4", {**WIDE, "gate_low_rank_dim": 4}, language_model([("mixer", gated)] * 2))],
    "gated_deltanet": [("equation 10", {**WIDE, "conv_size": 3}, language_model([("mixer", corrected)] * 2))],
    "based": [
        (
            "section 4.1 and a window",
            {**CONFIG, "feature_dim": 3, "sliding_window": 5},
            language_model([("mixer", weighted(expanded, 3)), ("attention", window)]),
        )
    ],
}
ARCHITECTURES = {
    "linear_transformer": "LinearTransformerLanguageModel",
    "retnet": "RetNetLanguageModel",
    "gla": "GLALanguageModel",
    "gated_deltanet": "GatedDeltaNetLanguageModel",
    "based": "BasedLanguageModel",
}
