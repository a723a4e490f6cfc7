"""A recipe for a task: length, batch, steps and rate found from the data and the model."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orrery.data.files import counted_faults
from orrery.data.sources import SOURCES
from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.objectives import OBJECTIVES
from orrery.recipes.config import ModelSettings, Recipe
from orrery.recipes.read import check_as, check_recipe, flatten, load_recipe, overridden
from orrery.runs.begin import Base, base_of
from orrery.schema.registry import settings_of
from orrery.tasks._task import BeginsNew, Learned, to_learn
from orrery.text.published import vocabularies as published

Mode = Literal["full", "frozen", "partial"]

MEASURED = 2000
"""Training rows whose tokens are counted to choose the length."""
RATE = 5e-5
"""For a model as wide as BERT's base; a narrower one learns in larger steps."""
ROWS_IN_ALL = 60_000
"""Rows seen in all, in 3 to 20 epochs."""


@dataclass(frozen=True)
class Request:
    """What is asked of a fine-tuning.

    Attributes:
        task: its name, or a recipe file whose key ``task`` names it and which says all the rest.
        model: where it begins: a run, a checkpoint, a folder.
        train: the file or named set to learn from.
        val: the file or named set to validate on; without one a tenth of the rows is held back.
        columns: columns of the data by the name of the setting.
        mode: what learns: the whole model, its head alone (``frozen``), or its last blocks too (``partial``).
        blocks: how many of the last blocks learn in the mode ``partial``.
        scratch: whether the model begins with fresh weights and has only the shape and the tokenizer of ``model``.
        name: of the run.
        objective: one of the task's in the place of its usual one.
    """

    task: str
    model: str | None = None
    train: str | None = None
    val: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = "full"
    blocks: int | None = None
    scratch: bool = False
    name: str | None = None
    objective: str | None = None

    @property
    def file(self) -> Path | None:
        """The recipe file, where one is asked for."""
        return Path(self.task) if self.task.endswith((".yaml", ".yml")) else None


def recipe_for(request: Request, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Recipe:
    """Return the recipe that fits data and model, or that of a file, with what the environment and the flags change.

    Raises:
        UsageError: there is no such task, or the model cannot learn it.
        DataError: the data cannot be read.
        ModelFileError: there is no model.
    """
    if request.file is not None:
        return _read(request, request.file, overrides, environment)
    task = to_learn(request.task)
    if request.model is None and request.train is not None and isinstance(task, BeginsNew):
        return _begun_new(request, request.train, task, overrides, environment)
    if request.model is None or request.train is None:
        raise UsageError(f"{request.task}: from which model, with which data?", "give --from MODEL --train FILE")
    base = base_of(ModelSettings.model_validate({"from": request.model}))
    assert base is not None
    data = task.data(request.train, request.val, dict(request.columns))
    source = _read_as_asked(task, data, request.train, overrides, environment)
    if base.stored.tokenizer is None and SOURCES.find(task.source).needs_tokenizer:
        raise UsageError(f"{base.stored.folder} has no tokenizer", "put its tokenizer.json into the folder")
    chosen = flatten(overridden({}, overrides, environment))
    rows, length = measured(task, source, base.stored)
    learned = {"kind": request.objective} if request.objective else {"kind": task.objective, **task.learns(base.stored)}
    values = {
        "name": request.name or f"{request.task}-{named_after(request.train)}",
        "task": task.kind,
        "model": model_section(request, base),
        **({"tokenizer": {"file": str(_tokenizer_file(base))}} if request.scratch and base.stored.tokenizer else {}),
        "data": data,
        "objective": learned,
        **_training(request, task, (rows, length, base.stored.model.spec.width), chosen, task.metrics(source)),
    }
    return check_recipe(overridden(values, overrides, environment), request.train)


def _begun_new(
    request: Request, train: str, task: Any, overrides: Sequence[str], environment: Mapping[str, str] | None
) -> Recipe:
    """Return the recipe of a task that makes its own model for the data.

    Raises:
        UsageError: a flag says how a model that exists learns.
        DataError: the data cannot be read.
    """
    if request.scratch or request.mode != "full" or request.blocks is not None:
        raise UsageError("--scratch, --mode and --blocks say how a model that exists learns", "give --from MODEL too")
    data = task.data(train, request.val, dict(request.columns))
    source = _read_as_asked(task, data, train, overrides, environment)
    steps = _number(flatten(overridden({}, overrides, environment)).get("training.steps"))
    values = {
        "name": request.name or f"{request.task}-{named_after(train)}",
        "task": task.kind,
        "data": data,
        "objective": {"kind": request.objective or task.objective},
        **task.begins(source, steps),
    }
    return check_recipe(overridden(values, overrides, environment), train)


def _read(
    request: Request, file: Path, overrides: Sequence[str], environment: Mapping[str, str] | None = None
) -> Recipe:
    """Return the recipe of a file, which nothing but its own keys may change."""
    usual = Request(request.task)
    for name in ("model", "train", "val", "columns", "mode", "blocks", "scratch", "objective"):
        if getattr(request, name) != getattr(usual, name):
            what = {"model": "--from has", "columns": "columns have", "objective": "another loss has"}.get(
                name, f"--{name} has"
            )
            message = f"{file} says what is learned, {what} no place beside it"
            raise UsageError(message, "change keys of the recipe: --data.train FILE")
    recipe = load_recipe(file, overrides, environment)
    if recipe.task is None:
        raise UsageError(
            f"{file} names no task, so nothing is known to score", "write task: and its name, or orrery train"
        )
    task = to_learn(recipe.task)
    kinds = (recipe.data.kind, getattr(recipe.objective, "kind", ""))
    if kinds[0] != task.source or kinds[1] not in (task.objective, *task.objectives):
        message = f"{file}: the task {task.kind} has data of kind {task.source} and the objective {task.objective}"
        raise UsageError(f"{message}, the recipe {kinds[0]} and {kinds[1]}", "change the one or the other")
    return recipe


def _read_as_asked(
    task: type[Learned],
    data: dict[str, Any],
    train: str,
    overrides: Sequence[str],
    environment: Mapping[str, str] | None,
) -> Any:
    """Return the data, read as the flags say: what they leave out or render otherwise is not measured.

    Raises:
        UsageError: a flag is none of the data.
        DataError: they cannot be read.
    """
    source = SOURCES.find(task.source)
    said = overridden({"data": dict(data)}, overrides, environment)["data"]
    if not isinstance(said, Mapping) or said.get("kind") != task.source:
        said = data  # refused where the recipe is checked
    with counted_faults():  # they are told when the run reads them
        return source.read(check_as(settings_of(source), said, train))


def measured(task: type[Learned], source: Any, stored: Stored) -> tuple[int, int]:
    """Return the number of training rows, and the length that leaves nearly all of them whole."""
    rows, counts = task.lengths(source, stored, MEASURED)
    lengths = sorted(counts)
    longest = lengths[min(len(lengths) - 1, math.ceil(task.whole * len(lengths)))]
    return rows, min(stored.model.spec.context, task.longest, 8 * math.ceil(longest / 8))


def model_section(request: Request, base: Base) -> dict[str, Any]:
    """Return the section ``model`` of the recipe.

    Raises:
        UsageError: a new model of the same shape cannot be described, or the mode asks for blocks that are not there.
    """
    if not request.scratch:
        return {"from": request.model, "freeze": list(frozen(request, base))}
    if base.stored.family is None or base.stored.config is None:
        message = f"{base.stored.folder} does not say of which family it is: no new model of its shape can be made"
        raise UsageError(message, "leave --scratch out, or write a recipe with model.family")
    dropped = ("architectures", "id2label", "label2id", "num_labels", "problem_type", "dtype", "model_type")
    config = {key: value for key, value in base.stored.config.items() if key not in dropped}
    return {"family": base.stored.family, "config": config}


def frozen(request: Request, base: Base) -> list[str]:
    """Return the patterns of the parameters that stay as they are.

    Raises:
        UsageError: the model has fewer blocks than are to learn.
    """
    if request.mode == "full":
        return []
    names = [name for name, _ in base.stored.model.named_parameters(remove_duplicate=False)]
    parts = dict.fromkeys(name.partition(".")[0] for name in names)
    kept = [f"{part}.*" for part in parts if part != "heads"]
    if request.mode == "frozen":
        return kept
    count = len(base.stored.model.stack.blocks)
    learning = 1 if request.blocks is None else request.blocks
    if not 1 <= learning < count:
        raise UsageError(f"{learning} of {count} blocks to learn", f"give a number from 1 to {count - 1}")
    stacks = [f"stack.blocks.{number}.*" for number in range(count - learning)]
    return [pattern for pattern in kept if pattern not in ("stack.*", "head.*")] + stacks


def _training(
    request: Request,
    task: type[Learned],
    sizes: tuple[int, int, int],
    chosen: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return batches, steps, rate and when to measure; what follows from the steps follows those that are chosen."""
    rows, length, width = sizes
    size = _number(chosen.get("batches.size")) or (32 if length <= 256 else 16)
    epochs = min(20, max(3, round(ROWS_IN_ALL / rows)))
    steps = _number(chosen.get("training.steps")) or max(60, math.ceil(epochs * rows / size))
    every = max(1, steps // min(10, epochs))
    best = {"best": metrics[0]["kind"]} if metrics else {}
    rate = 1e-3 if request.mode == "frozen" or request.scratch else min(1e-3, RATE * 768 / width)
    return {
        "batches": {"kind": _batches(request, task), "length": length, "size": size},
        "training": {
            "steps": steps,
            "optimizer": {"kind": "adamw", "rate": float(f"{rate:.1e}"), "betas": [0.9, 0.999], "weight_decay": 0.01},
            "schedule": {"kind": "linear", "warmup": steps // 10},
            "final": "best",
        },
        "evaluation": {"every": every, "metrics": list(metrics), **best},
        "checkpoints": {"every": every, "keep": 1},
        "logging": {"every": max(1, every // 5)},
    }


def _batches(request: Request, task: type[Learned]) -> str:
    """Return the kind of batches: the task's, or the first that an objective asked for can read."""
    if request.objective is None:
        return task.batches
    source, needs = SOURCES.find(task.source), set(OBJECTIVES.find(request.objective).needs)
    return next(kind for kind in (*source.batch_kinds, task.batches) if needs <= set(source.fields(kind)))


def _number(value: Any) -> int | None:
    """Return a number that a flag gives; another value is refused where the recipe is checked."""
    return value if type(value) is int and value > 0 else None


def named_after(source: str) -> str:
    """Return what a run is called after its data: the name of the set, or of the file without its endings."""
    path = Path(source)
    name = path.name.partition(".")[0] if path.exists() else source
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "data"


def _tokenizer_file(base: Base) -> Any:
    """Return the file of a model's tokenizer, in its folder or in that of its run."""
    folder = base.stored.folder
    places = map(published.file_in, (folder, folder.parent, folder.parent.parent))
    return next(place for place in places if place is not None)
