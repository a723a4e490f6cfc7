"""A recipe for a text that came without one: a model and a training of the size of the text."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_corpus
from orrery.data.formats import SUFFIXES, format_of
from orrery.data.sources.text import TextSettings, text_of
from orrery.errors import DataError, UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, flatten, overridden

LEAST = 2_000
"""Bytes below which there is nothing to learn and to hold back."""
DOCUMENTS = 100
"""From so many documents on whole ones are held back, one in twenty; of fewer the last tenth of each."""


OFTEN, MOST, LEAST_VOCABULARY = 4, 16_384, 400
"""How often a word comes that becomes an id, how many are counted, and the ids below which characters do better."""
_WORD = re.compile(r"[^\W\d_]{2,}")

BEGUN = 3e-4
"""The rate of a training that begins from a model: large ones undo what it knows."""


@dataclass(frozen=True)
class TextSize:
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
    rate: float


@dataclass(frozen=True)
class TextFacts:
    """What a text holds: documents, bytes, and different words that come often."""

    documents: int
    bytes: int
    words: int


SIZES = (
    TextSize(20_000, None, 96, 3, 3, 64, 8, 400, 0.2, 1.5e-3),
    TextSize(200_000, 512, 128, 4, 4, 128, 8, 600, 0.2, 1.5e-3),
    TextSize(2_000_000, 2048, 192, 4, 4, 128, 8, 1200, 0.1, 1.5e-3),
    TextSize(20_000_000, 4096, 256, 6, 4, 256, 8, 2000, 0.0, 1e-3),
    TextSize(200_000_000, 8192, 384, 6, 6, 256, 16, 4000, 0.0, 1e-3),
    TextSize(2**62, 16384, 512, 8, 8, 512, 16, 10000, 0.0, 1e-3),
)


def is_text(source: Path) -> bool:
    """Say whether a path is a text to train on, by its name: a folder, or a file of a format that is read as text."""
    return source.is_dir() or (source.is_file() and format_of(source) in SUFFIXES)


def recipe_for(source: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Recipe:
    """Return the recipe that fits a text, with what the environment and the flags change.

    Raises:
        UsageError: the folder is a run, or a flag is none of a recipe.
        DataError: the text cannot be read, or there is too little of it.
    """
    if (source / "run.json").is_file() or (source / "config.json").is_file():
        goes_on = f"orrery train {source} --resume goes on with it; " if (source / "run.json").is_file() else ""
        hint = f"{goes_on}orrery train TEXT --model.from {source} begins from it"
        raise UsageError(f"{source} holds a model, not a text", hint)
    if (source / "stages.json").is_file():
        message = f"{source} holds the stages of a recipe, not a text"
        raise UsageError(message, f"orrery train RECIPE --output {source} --resume goes on with them")
    given = flatten(overridden({}, overrides, environment))

    def made(size: TextSize, documents: int) -> Recipe:
        steps = given.get("training.steps")
        # What is measured, saved and warmed up follows the steps that are asked for.
        size = replace(size, steps=steps) if type(steps) is int and steps > 0 else size
        values = _values(source, documents, size, begun="model.from" in given)
        return check_recipe(overridden(values, overrides, environment), str(source))

    # Faults of the flags are told before the text is read, and it is read as the flags say.
    largest = made(SIZES[-1], DOCUMENTS)
    text = _measured(text_of(largest.data, largest.name))
    if text.bytes < LEAST:
        raise DataError(f"{source} holds {text.bytes:,} bytes of text", f"give at least {LEAST:,}")
    size = next(size for size in SIZES if text.bytes <= size.bytes)
    return made(replace(size, vocabulary=_vocabulary(size.vocabulary, text.words)), text.documents)


def _measured(settings: TextSettings) -> TextFacts:
    """Count what a text holds; words until there are more than the largest vocabulary asks for."""
    documents = size = 0
    counts: Counter[str] = Counter()
    often: set[str] = set()
    for part in settings.parts:
        for document in read_corpus(
            part.train, column=settings.column, invalid=settings.invalid, skip_bad=settings.skip_bad
        ):
            documents, size = documents + 1, size + len(document.text.encode())
            if len(often) < MOST:
                words = Counter(_WORD.findall(document.text))
                counts.update(words)
                often.update(word for word in words if counts[word] >= OFTEN)
    return TextFacts(documents, size, len(often))


def _vocabulary(wanted: int | None, words: int) -> int | None:
    """Return how many ids the text can surely give, or nothing where characters do better.

    Every word that comes again becomes an id of its own before the merges end, beside the 256 bytes.
    """
    possible = 256 + words
    return None if wanted is None or possible < LEAST_VOCABULARY else min(wanted, possible)


def _values(source: Path, documents: int, size: TextSize, begun: bool) -> dict[str, Any]:
    """Return the recipe as plain values; one that begins from a model says nothing of its kind and its tokenizer."""
    kind = {"kind": "character"} if size.vocabulary is None else {"kind": "byte_bpe", "vocabulary": size.vocabulary}
    model = {
        "hidden_size": size.width,
        "intermediate_size": 8 * size.width // 3 // 8 * 8,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "max_position_embeddings": size.length,
        "tie_word_embeddings": True,
    }
    new = {"model": {"family": "llama", "config": model, "dropout": size.dropout}, "tokenizer": kind}
    return {
        "name": re.sub(r"[^\w.-]+", "-", source.resolve().stem).strip(".-")[:100] or "text",
        **({"model": {"dropout": size.dropout}} if begun else new),
        "data": {"train": str(source), "split": {"every": 20} if documents >= DOCUMENTS else {"tail": 0.1}},
        "batches": {"kind": "crops", "length": size.length, "size": size.rows},
        "training": {
            "steps": size.steps,
            "optimizer": {"kind": "adamw", "rate": BEGUN if begun else size.rate, "betas": [0.9, 0.99]},
            "schedule": {"kind": "cosine", "warmup": size.steps // 15, "final": 0.1},
        },
        "evaluation": {"every": max(1, size.steps // 6)},
        "checkpoints": {"every": max(1, size.steps // 2), "keep": 1},
        "logging": {"every": max(1, size.steps // 30)},
    }
