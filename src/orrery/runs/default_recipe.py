"""A recipe for a text that came without one: a model and a training of the size of the text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_corpus
from orrery.errors import DataError, UsageError
from orrery.training.config import Recipe
from orrery.training.recipes import check_recipe, overridden

RECIPES = (".yaml", ".yml")
LEAST = 2_000
"""Bytes below which there is nothing to learn and to hold back."""
DOCUMENTS = 100
"""From so many documents on whole ones are held back, one in twenty; of fewer the last tenth of each."""


BEGUN = 3e-4
"""The rate of a training that begins from a model: large ones undo what it knows."""


@dataclass(frozen=True)
class Size:
    """What suits texts of up to so many ``bytes``: pieces, model, batches and steps.

    The model of two megabytes is the demo's, which two cores train in two minutes; the others keep its shape, and read
    a text a few times at the most.
    """

    bytes: int
    vocabulary: int | None
    width: int
    layers: int
    heads: int
    length: int
    rows: int
    steps: int
    dropout: float


SIZES = (
    Size(20_000, None, 96, 3, 3, 64, 8, 400, 0.2),
    Size(200_000, 512, 128, 4, 4, 128, 8, 600, 0.2),
    Size(2_000_000, 2048, 192, 4, 4, 128, 8, 1200, 0.1),
    Size(20_000_000, 4096, 256, 6, 4, 256, 8, 2000, 0.0),
    Size(200_000_000, 8192, 384, 6, 6, 256, 16, 4000, 0.0),
    Size(2**62, 16384, 512, 8, 8, 512, 16, 10000, 0.0),
)


def is_text(source: Path) -> bool:
    """Say whether a path is a text to train on, a file or a folder, rather than a recipe."""
    return source.is_dir() or (source.is_file() and source.suffix not in RECIPES)


def recipe_for(
    source: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Recipe:
    """Return the recipe that fits a text, with what the environment and the flags change.

    Raises:
        UsageError: the folder is a run, or a flag is none of a recipe.
        DataError: the text cannot be read, or there is too little of it.
    """
    if (source / "run.json").is_file() or (source / "config.json").is_file():
        hint = f"orrery train TEXT --model.from {source} begins from it; a run's config.yaml with --resume continues it"
        raise UsageError(f"{source} holds a model, not a text", hint)
    documents, size = _measured(source)
    if size < LEAST:
        raise DataError(f"{source} holds {size:,} bytes of text", f"give at least {LEAST:,}")
    chosen = next(choice for choice in SIZES if size <= choice.bytes)
    asked = {"model": {}, "training": {}} | overridden({}, overrides, environment)
    steps = asked["training"].get("steps")
    # What is measured, saved and warmed up follows the steps that are asked for.
    chosen = replace(chosen, steps=steps) if type(steps) is int and steps > 0 else chosen
    values = _values(source, documents, chosen)
    if "from" in asked["model"]:
        values["model"] = {"dropout": chosen.dropout}
        values["training"]["optimizer"]["rate"] = BEGUN
        del values["tokenizer"]
    return check_recipe(overridden(values, overrides, environment), str(source))


def _measured(source: Path) -> tuple[int, int]:
    """Return the documents of a text and their bytes."""
    sizes = [len(document.text.encode()) for document in read_corpus(source)]
    return len(sizes), sum(sizes)


def _values(source: Path, documents: int, size: Size) -> dict[str, Any]:
    """Return the recipe as plain values."""
    kind = {"kind": "character"} if size.vocabulary is None else {"kind": "byte_bpe", "vocabulary": size.vocabulary}
    model = {
        "hidden_size": size.width,
        "intermediate_size": 8 * size.width // 3 // 8 * 8,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "max_position_embeddings": size.length,
        "tie_word_embeddings": True,
    }
    return {
        "name": re.sub(r"[^\w.-]+", "-", source.resolve().stem).strip(".-")[:100] or "text",
        "model": {"family": "llama", "config": model, "dropout": size.dropout},
        "tokenizer": kind,
        "data": {"train": str(source), "split": {"every": 20} if documents >= DOCUMENTS else {"tail": 0.1}},
        "batches": {"kind": "crops", "length": size.length, "size": size.rows},
        "training": {
            "steps": size.steps,
            "optimizer": {"kind": "adamw", "rate": 1.5e-3 if size.width <= 192 else 1e-3, "betas": [0.9, 0.99]},
            "schedule": {"kind": "cosine", "warmup": size.steps // 15, "final": 0.1},
        },
        "evaluation": {"every": max(1, size.steps // 6)},
        "checkpoints": {"every": max(1, size.steps // 2), "keep": 1},
        "logging": {"every": max(1, size.steps // 30)},
    }
