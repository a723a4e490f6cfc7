"""What the verbs that train a method on a model share: a model or a recipe first, then the data."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.errors import UsageError
from orrery.settings import runs_folder
from orrery.training.recipes import as_yaml

if TYPE_CHECKING:
    from orrery.finetuning.recipe import Request
    from orrery.training.config import Recipe


def is_recipe(word: str) -> bool:
    """Say whether the first argument is a recipe file, and no model."""
    return word.endswith((".yaml", ".yml"))


def asked_of(task: str, model: str, train: str | None, val: str | None, output: Path | None) -> "Request":
    """Return what is asked for by ``orrery TASK MODEL --train FILE``, or by a recipe in the place of the model.

    Raises:
        UsageError: a model without data.
    """
    from orrery.finetuning.recipe import Request

    name = output.name if output else None
    if is_recipe(model):
        return Request(model, train=train, val=val, name=name)
    if train is None:
        raise UsageError(f"{task}: {model} learns from which data?", "give --train FILE, or a recipe (.yaml)")
    return Request(task, model, train, val, name=name)


def carry_out(
    asked: "Request",
    overrides: Sequence[str],
    *,
    task: str | None = None,
    seeds: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    print_config: bool = False,
    output: Path | None = None,
) -> int:
    """Train and score what is asked for, or print its recipe, and return the exit code.

    ``task`` is the one that a recipe has to name.

    Raises:
        UsageError: the recipe names another task, or what is asked for does not fit together.
    """
    from orrery.finetuning.recipe import recipe_for

    recipe = recipe_for(asked, overrides, os.environ)
    if task is not None and recipe.task != task:
        raise UsageError(f"{asked.task} is a recipe of the task {recipe.task}, not {task}", "use orrery finetune")
    files = [Path(each) for each in (asked.task, asked.model, asked.train, asked.val) if each]
    how: dict[str, Any] = {"seeds": seeds, "resume": resume, "overwrite": overwrite}
    return trained(recipe, files, print_config=print_config, output=output, **how)


def trained(
    recipe: "Recipe",
    files: Sequence[Path],
    *,
    seeds: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    print_config: bool = False,
    output: Path | None = None,
) -> int:
    """Train and score a recipe, or print it, and return the exit code; ``files`` must not be replaced."""
    from orrery.finetuning.seeds import with_seeds
    from orrery.training.progress import find_reporter

    if print_config:
        print(as_yaml(recipe), end="")
        return 0
    folder = output or runs_folder() / recipe.name
    done = with_seeds(
        recipe, folder, find_reporter, print, inputs=files, seeds=seeds, resume=resume, overwrite=overwrite
    )
    return 128 + done.signal if done.signal else 0
