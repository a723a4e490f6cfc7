"""A ladder of tiny models on a tiny text, and findings that follow a law without any training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from orrery.studies.ladder.findings import LadderFindings, LadderRun

LADDER: dict[str, Any] = {
    "name": "toy",
    "ladder": {
        "sizes": [{"hidden_size": width} for width in (8, 12, 16, 24)],
        "tokens_per_parameter": 0.2,
        "seeds": [1, 2],
    },
    "model": {
        "family": "llama",
        "config": {
            "intermediate_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "max_position_embeddings": 16,
            "tie_word_embeddings": True,
        },
    },
    "tokenizer": {"kind": "character"},
    "data": {"train": "ring", "split": {"every": 20}},
    "batches": {"kind": "crops", "length": 16, "size": 4},
    "training": {
        "steps": 1,
        "precision": "float32",
        "device": "cpu",
        "optimizer": {"kind": "adamw", "rate": 0.01},
        "schedule": {"kind": "linear"},
    },
    "evaluation": {"batches": 1},
}


def write_ladder(path: Path, **changes: Any) -> Path:
    """Write the recipe, with other values in its section of sizes."""
    path.write_text(yaml.safe_dump({**LADDER, "ladder": {**LADDER["ladder"], **changes}}))
    return path


def followed(
    law: Callable[[float], float], sizes: tuple[int, ...] = (20_000, 40_000, 80_000, 160_000, 320_000, 640_000)
) -> LadderFindings:
    """Return a ladder whose losses are those of a law of the parameters, times ``exp(noise)`` of each seed."""
    seeds = {1: -0.001, 2: 0.0, 3: 0.001}
    numbers = [
        {
            "config": {"hidden_size": place, "num_hidden_layers": 3},
            "parameters": size,
            "tokens": 20 * size,
            "steps": size // 50,
            "operations": 120.0 * size**2,
            "rate": 0.01,
            "planned_seconds": size / 1000,
        }
        for place, size in enumerate(sizes, start=1)
    ]
    corpus = {key: 10 for key in ("train_bytes", "train_tokens", "measured_bytes", "measured_tokens", "vocabulary")}
    rules = {"tokens_per_parameter": 20.0, "rate_exponent": 0.25, "seeds": list(seeds)}
    ladder = LadderFindings({"ladder": rules}, {**corpus, "source": "<text>", "fingerprint": "0" * 64}, numbers)
    for size in sizes[:-1]:
        ladder.runs += [LadderRun(size, seed, law(size) * (1 + noise), 2.0, 60.0) for seed, noise in seeds.items()]
    return ladder
