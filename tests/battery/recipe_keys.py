"""Every key of every recipe, from the models of settings, with values that are none of its type, or out of range."""

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from battery import values, verbs
from battery.case import Case
from orrery.data.sources import SOURCES, SourceSettings
from orrery.objectives import OBJECTIVES
from orrery.recipes.config import Recipe
from orrery.recipes.word_vectors import WordVectorRecipe
from orrery.schema.section import Section

HUGE = ("9223372036854775808", "1" + "0" * 30, "9" * 5000)
NUMBERS = (
    "true", "false", "abc", "''", "[1]", "{a: 1}", ".nan", ".inf", "-.inf", "1e400", *HUGE, "!!binary aGk=",
    "2020-01-01", "!!set {a}", "&a [*a]", "[" * 2000, "-1", "0", "12:30",
)  # fmt: skip
INTEGERS = (*NUMBERS, "1.5", values.LARGE)
WORDS = (
    "1", "true", "[a]", "{a: b}", ".nan", "9" * 5000, "''", "12:30", "!!binary aGk=", '"\\0"', '"\\ud800"', "x" * 300,
    "\udcff", "&a {b: *a}",
)  # fmt: skip
PATHS = (
    "missing", "folder", "binary", "empty", "/dev/null", "/proc/self/mem", "loop", "dangling", "text.txt/below",
    "n" * 300, "\udcff", '"a\\0b"', "1", "[a]", "pipe",
)  # fmt: skip
OTHERS = (
    "1", "true", "abc", "[1]", "[[1]]", "{a: 1}", "[]", "[0.9]", "[0.9, 0.9, 0.9]", ".nan", "{1: 2}", "{[1]: 2}",
    "9" * 5000, "&a [*a]",
)  # fmt: skip
CHOICES = ("perhaps", "1.5", "[true]", "null", ".nan", "''", "{a: 1}", "9" * 5000)
NO_KEYS = (
    "", ".", "a..b", "training", "training.steps.more", "training.", ".steps", "\udcff", "x" * 5000, "__class__",
    "model_fields", "training.model_config", "model.config.",
)  # fmt: skip
FREE = {"name", "data.column", "evaluation.sample", "expect.bound", "seed", "model.config", "generation.logit_bias"}
"""Keys where some of the values above mean something."""
FROM_ZERO = {
    "seed", "data.skip_bad", "words.phrases", "training.schedule.warmup", "training.schedule.decay", "expect.bound",
    "training.final_rate", "words.sample", "training.optimizer.momentum", "training.optimizer.weight_decay",
    "objective.power", "objective.label_smoothing", "objective.balance", "model.dropout", "training.schedule.final",
    "training.steps", "generation.min_new_tokens", "generation.no_repeat_ngram_size", "generation.length_penalty",
    "generation.temperature", "generation.top_k", "generation.min_p",
    "generation.presence_penalty", "generation.frequency_penalty",
}  # fmt: skip
LISTS = {"model.freeze", "evaluation.metrics", "rewards"}
"""Lists that may be empty."""
WORK = {"training.steps", "batches.size", "training.epochs"}
"""So much of these is only much work."""
PATH_KEYS = ("data.train", "data.val", "data.pairs", "data.shards", "data.pairs.source", "data.pairs.target")


BY_NAME = {SourceSettings: SOURCES, Section: OBJECTIVES}
"""Sections of a recipe whose class follows from a name."""


def keys(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield each dotted key with its annotation, and what must be set beside it for its section to be chosen."""
    for name, field in model.model_fields.items():
        sections = _sections(field.annotation)
        for section in sections:
            beside = _kind(section, f"{path}{name}")
            yield from ((key, kind, beside | more) for key, kind, more in keys(section, f"{path}{name}."))
        yield f"{path}{name}", field.annotation, {}


def _kind(section: type[BaseModel], path: str) -> dict[str, str]:
    field = section.model_fields.get("kind")
    return {f"{path}.kind": str(field.default)} if field is not None and isinstance(field.default, str) else {}


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """Return the sections that an annotation may be; of parts found by name, those of all of them."""
    if annotation in BY_NAME:
        return [BY_NAME[annotation].find(name).Settings for name in BY_NAME[annotation].names()]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated):
        return [section for one in typing.get_args(annotation) for section in _sections(one)]
    return []


def cases(count: int = 3) -> Iterator[Case]:
    """Yield every key of both recipes with so many of its values, and keys that there are not."""
    spread: dict[str, values.Spread] = {}
    for name, model in (("recipe", Recipe), ("words", WordVectorRecipe)):
        seen = set()
        for key, annotation, beside in keys(model):
            beside = {} if any(kind in seen for kind in ((key, *beside.items()),)) else beside
            if key.endswith("kind") or key in seen:
                continue
            seen.add(key)
            words = ["train", f"{name}.yaml"]
            words += [f"--{flag}={value}" for flag, value in beside.items() if not flag.startswith("batches")]
            given, kind = _values(key, annotation)
            for value in spread.setdefault(kind, values.Spread(count)).some(given):
                if value == values.LARGE and key in WORK:
                    continue
                fine = (
                    key in FREE
                    or value in ("folder", values.LARGE)
                    or (kind == "float" and value in HUGE[:2])
                    or (value == "null" and types.NoneType in typing.get_args(annotation))
                    or (key in LISTS and value == "[]")
                    or (key in FROM_ZERO and value in ("0", "-1", "false", "12:30"))
                )
                yield Case(
                    f"{name} {key}={values.short(value)}",
                    [*words, f"--{key}={value}"],
                    "any" if fine else "error",
                    before=verbs.pipe if value == "pipe" else None,
                )
        for word in NO_KEYS:
            yield Case(f"{name} the key {values.short(word)!r}", ["train", f"{name}.yaml", f"--{word}=1"], "error")


def _values(key: str, annotation: Any) -> tuple[tuple[str, ...], str]:
    """Return values for a key that it cannot have, and the name of their kind."""
    types = values.kinds(annotation)
    if key in PATH_KEYS or Path in types:
        return PATHS, "path"
    if types & {int, float} and not types & {"many", str}:
        return (INTEGERS, "int") if int in types else (NUMBERS, "float")
    if bool in types or "literal" in types:
        return CHOICES, "choice"
    return (WORDS, "word") if types == {str} else (OTHERS, "other")
