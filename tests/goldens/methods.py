"""Golden numbers of training, sampling and search, from their formulas and from transformers' logits processors."""

import itertools
import math
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.generation import logits_process as processors

from orrery.laws import questions
from tests.goldens.formulas import ATTENTION, READERS, RECURRENT, Weights, language_model, transformer
from tests.goldens.transformers_models import NAME

FORMULAS = {"elman_rnn": language_model("rnn"), "transformer": transformer(24, 3, 20, 0.01)}
CONFIGS = {"elman_rnn": {**RECURRENT, "dropout": 0.0}, "transformer": {**ATTENTION, "dropout": 0.0}}
RUNS: list[tuple[str, str, float, dict[str, Any]]] = [
    (
        "Adam, Noam, label smoothing",
        "transformer",
        0.1,
        {
            "optimizer": {"kind": "adam", "rate": 2.0, "betas": [0.9, 0.98], "eps": 1e-9},
            "schedule": {"kind": "noam", "warmup": 3, "width": 24},
            "clip": None,
        },
    ),
    (
        "AdamW, cosine, clipped",
        "elman_rnn",
        0.0,
        {
            "optimizer": {"kind": "adamw", "rate": 0.05, "betas": [0.8, 0.9], "eps": 1e-3, "weight_decay": 0.7},
            "schedule": {"kind": "cosine", "warmup": 2, "final": 0.2},
            "clip": 0.5,
        },
    ),
    (
        "SGD with momentum, warm-up, stay, decay",
        "elman_rnn",
        0.0,
        {
            "optimizer": {"kind": "sgd", "rate": 0.3, "momentum": 0.8, "weight_decay": 0.05},
            "schedule": {"kind": "wsd", "warmup": 2, "decay": 2, "final": 0.1},
            "clip": 1.0,
        },
    ),
    (
        "AdamW, linear",
        "elman_rnn",
        0.2,
        {
            "optimizer": {"kind": "adamw", "rate": 0.02, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1},
            "schedule": {"kind": "linear", "warmup": 1, "final": 0.3},
            "clip": None,
        },
    ),
]
STEPS = 5


def training() -> list[dict[str, Any]]:
    """Return the runs."""
    return [
        {
            "name": name,
            "by": "the formulas",
            "family": family,
            "config": CONFIGS[family],
            "smoothing": smoothing,
            "steps": STEPS,
            "training": settings,
            "found": trained(family, smoothing, settings),
        }
        for name, family, smoothing, settings in RUNS
    ]


def trained(family: str, smoothing: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Train by the formulas."""
    w, memory = Weights(), {}
    losses, norms = [], []
    for t in range(1, STEPS + 1):
        loss = mean_loss(family, w, [t - 1], smoothing)
        for p in w.values():
            p.grad = None
        loss.backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in w.values() if p.grad is not None))
        shrink = min(1.0, (settings["clip"] or math.inf) / (norm + 1e-6))  # torch adds 1e-6
        rate = settings["optimizer"]["rate"] * factor(t, **settings["schedule"])
        with torch.no_grad():
            for name, p in w.items():
                if p.grad is not None:
                    update(p, p.grad * shrink, memory.setdefault(name, {}), t, rate, settings["optimizer"])
        losses.append(float(loss.detach()))
        norms.append(norm)
    final = questions.slope({name: p.detach() for name, p in w.items()})
    held_back = mean_loss(family, w, [questions.HELD_BACK, questions.HELD_BACK + 1], 0.0)
    return {
        "losses": losses,
        "gradient norms": norms,
        "validation": float(held_back.detach()),
        "final weights": [final["norm"], final["slope"]],
    }


def mean_loss(family: str, w: Weights, batches: list[int], smoothing: float) -> Tensor:
    """Return ``-sum_v q(v) log p(v)``, ``q = (1 - e) [v = target] + e / V``: its mean over all targets."""
    costs = []
    for number in batches:
        sources = [(s,) for s in questions.lesson(number, "source")] if family in READERS else [()] * 3
        for row, source in zip(questions.lesson(number), sources, strict=True):
            log_p = FORMULAS[family](w, row[:-1], *source).log_softmax(-1)
            right = log_p[torch.arange(len(row) - 1), row[1:]]
            costs.append(-(1 - smoothing) * right - smoothing * log_p.mean(-1))
    return torch.cat(costs).mean()


def factor(t: int, kind: str, warmup: int, **more: Any) -> float:
    """Return the schedule's factor at update ``t``, from 1."""
    if kind == "noam":
        return more["width"] ** -0.5 * min(t**-0.5, t * warmup**-1.5)
    rise = min(1.0, t / warmup)
    if kind == "wsd":
        late = max(0.0, (t - (STEPS - more["decay"])) / more["decay"])
        return rise * (1 - (1 - more["final"]) * late)
    gone = max(0.0, (t - warmup) / (STEPS - warmup))
    down = (1 + math.cos(math.pi * gone)) / 2 if kind == "cosine" else 1 - gone
    return rise * (more["final"] + (1 - more["final"]) * down)


def update(p: Tensor, g: Tensor, memory: dict[str, Tensor], t: int, rate: float, how: dict[str, Any]) -> None:
    """Do one step; weight decay reaches matrices only."""
    decay = how.get("weight_decay", 0.0) if p.dim() >= 2 else 0.0
    if how["kind"] == "sgd":
        g = g + decay * p
        memory["v"] = how["momentum"] * memory["v"] + g if memory else g
        p -= rate * memory["v"]
        return
    a, b = how["betas"]
    memory["m"] = a * memory.get("m", torch.zeros_like(g)) + (1 - a) * g
    memory["v"] = b * memory.get("v", torch.zeros_like(g)) + (1 - b) * g**2
    m, v = memory["m"] / (1 - a**t), memory["v"] / (1 - b**t)
    p -= rate * (m / (v.sqrt() + how["eps"]) + decay * p)


def tables() -> list[dict[str, Any]]:
    """Return the positions that transformers' constructors make."""
    small = {"vocab_size": 61, "d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 24}
    small |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_start_token_id": 5}
    rows = []
    for family in ("marian", "pegasus"):
        settings = transformers.AutoConfig.for_model(family, **small, pad_token_id=0)
        model = transformers.AutoModelForSeq2SeqLM.from_config(settings)
        table = model.model.encoder.embed_positions.weight.detach().double()
        rows.append({"family": family, "by": NAME, "config": small, "found": questions.summary([[table]])["sums"]})
    return rows


SETTINGS: list[dict[str, float]] = [
    {"temperature": 0.7},
    {"temperature": 1.0, "top_k": 4},
    {"temperature": 1.0, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.15},
    {"temperature": 1.0, "repetition_penalty": 1.6},
    {"temperature": 1.3, "repetition_penalty": 1.2, "top_k": 9, "top_p": 0.9, "min_p": 0.05},
]


def sampling() -> list[dict[str, Any]]:
    """Return the probabilities that transformers' processors leave."""
    logits, seen = questions.scores()
    return [
        {
            "name": ", ".join(f"{key} {value}" for key, value in settings.items()),
            "by": NAME,
            "settings": settings,
            "found": [p for row, held in zip(logits, seen, strict=True) for p in kept(row, held, **settings)],
        }
        for settings in SETTINGS
    ]


def kept(row: Tensor, held: Tensor, temperature: float, **settings: float) -> list[float]:
    """Return the probabilities of one row."""
    order = {
        "repetition_penalty": processors.RepetitionPenaltyLogitsProcessor,
        "temperature": processors.TemperatureLogitsWarper,
        "top_k": processors.TopKLogitsWarper,
        "top_p": processors.TopPLogitsWarper,
        "min_p": processors.MinPLogitsWarper,
    }
    scores, ids = row[None], held.nonzero().T
    for name, kind in order.items():
        value = temperature if name == "temperature" else settings.get(name)
        if value is not None:
            scores = kind(value)(ids, scores)
    shares: list[float] = scores.softmax(-1)[0].tolist()
    return shares


APART = 1e-6
"""The least difference of scores on both sides of a cut: a tie would be decided by how a processor rounds."""
LISTED = 4
"""The tokens of answers that are all listed: of seven, seven to the power of four."""


def search() -> list[dict[str, Any]]:
    """Return the best answers of a model of pairs and places, all of them listed, and those of a beam that narrows."""
    log_p = questions.table().log_softmax(-1).tolist()
    return [
        {
            "name": f"{tokens} tokens, penalty {alpha}",
            "by": "a list of all answers",
            "tokens": tokens,
            "alpha": alpha,
            "width": width,
            "best": listed(log_p, LISTED, alpha),
            "beams": beams(log_p, tokens, alpha, width),
            "first": [beams(log_p, tokens, alpha, width, prompt)["scores"][0] for prompt in range(1, 7)],
        }
        for tokens, alpha, width in ((4, 0.0, 2), (6, 0.6, 3), (7, 1.5, 4))
    ]


Table = list[list[list[float]]]
"""The log probability of each next token, by the place of the last one and the last one."""


def score(log_p: Table, ids: tuple[int, ...], alpha: float, prompt: int = 1) -> float:
    total = sum(log_p[place][a][b] for place, (a, b) in enumerate(zip((prompt, *ids), ids, strict=False)))
    return total / ((5 + len(ids)) / 6) ** alpha


def listed(log_p: Table, tokens: int, alpha: float) -> dict[str, Any]:
    """List every answer: it ends with token 0, or has all its tokens."""
    every = [
        ids
        for n in range(1, tokens + 1)
        for ids in itertools.product(range(7), repeat=n)
        if 0 not in ids[:-1] and (n == tokens or ids[-1] == 0)
    ]
    best = sorted(every, key=lambda ids: -score(log_p, ids, alpha))
    assert all(score(log_p, a, alpha) > score(log_p, b, alpha) + APART for a, b in itertools.pairwise(best[:6]))
    best = best[:5]
    return {"scores": [score(log_p, ids, alpha) for ids in best], "ids": [list(ids) for ids in best]}


def beams(log_p: Table, tokens: int, alpha: float, width: int, prompt: int = 1) -> dict[str, Any]:
    """Follow ``width`` beginnings; one that ends leaves its place empty (Sutskever et al. 2014, section 3.2)."""
    growing: list[tuple[int, ...]] = [()]
    ended: list[tuple[int, ...]] = []
    while growing:
        longer = sorted(
            ((*ids, token) for ids in growing for token in range(7)), key=lambda ids: -score(log_p, ids, 0.0, prompt)
        )
        kept, left = longer[: width - len(ended)], longer[width - len(ended) :]
        assert not left or score(log_p, kept[-1], 0.0, prompt) > score(log_p, left[0], 0.0, prompt) + APART
        longer = kept
        growing = [ids for ids in longer if ids[-1] != 0 and len(ids) < tokens]
        ended += [ids for ids in longer if ids[-1] == 0 or len(ids) == tokens]
    best = sorted(ended, key=lambda ids: -score(log_p, ids, alpha, prompt))
    return {"scores": [score(log_p, ids, alpha, prompt) for ids in best], "ids": [list(ids) for ids in best]}
