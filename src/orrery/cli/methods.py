"""What the verbs that train a method on a model share: a model or a recipe first, then the data."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import TIMES
from orrery.cli.places import RECIPES, check_places
from orrery.errors import UsageError
from orrery.recipes.read import as_yaml
from orrery.settings import runs_folder

if TYPE_CHECKING:
    from orrery.recipes.config import Recipe
    from orrery.tasks.finetuning.recipe import Request

_SEEDS = "Train so many times with different seeds, and say mean and spread."
_RESUME = "Continue from the newest sound checkpoint of the folder."
_OVERWRITE = "Replace the run that is in the folder; it stays until the new one has its first checkpoint."
_OUTPUT = "The run's folder; by default runs/ and the recipe's name."


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How often is trained, from where on, and where the run goes."""

    seeds: Annotated[int, TIMES, Parameter(help=_SEEDS)] = 1
    resume: Annotated[bool, Parameter(help=_RESUME)] = False
    overwrite: Annotated[bool, Parameter(help=_OVERWRITE)] = False
    print_config: Annotated[bool, Parameter(help="Print the recipe, and stop.")] = False
    output: Annotated[Path | None, Parameter(help=_OUTPUT)] = None


ONCE = RunOptions()
"""What is used unless told otherwise."""


def is_recipe(word: str) -> bool:
    """Say whether the first argument is a recipe file, and no model."""
    return word.endswith(RECIPES)


def gone_on(word: str, run: RunOptions) -> str:
    """Return the recipe of the run that is to go on, where a word names its folder; else the word."""
    from orrery.runs.going_on import run_at
    from orrery.training.folder import CONFIG

    folder = run_at(Path(word)) if run.resume else None
    return word if folder is None else str(folder / CONFIG)


def asked_of(task: str, model: str, train: str | None, val: str | None, run: RunOptions) -> "Request":
    """Return what is asked for by ``orrery TASK MODEL --train FILE``, or by a recipe in the place of the model.

    Raises:
        UsageError: a model without data.
    """
    if train is None and not is_recipe(model):
        raise UsageError(f"{task}: {model} learns from which data?", "give --train FILE, or a recipe (.yaml)")
    from orrery.tasks.finetuning.recipe import Request

    name = run.output.name if run.output else None
    if train is None:
        model = gone_on(model, run)
    if is_recipe(model):
        return Request(model, train=train, val=val, name=name)
    return Request(task, model, train, val, name=name)


def carry_out(request: "Request", overrides: Sequence[str], run: RunOptions, *, task: str | None = None) -> int:
    """Train and score what is asked for, or print its recipe, and return the exit code.

    ``task`` is the one that a recipe has to name.

    Raises:
        UsageError: the recipe names another task, or what is asked for does not fit together.
    """
    from orrery.runs.going_on import folder_of, where_begun

    home = folder_of(Path(request.task), run.output) if run.resume else None
    if home is None:
        return _carry_out(request, overrides, run, task)
    request = replace(request, task=os.path.abspath(request.task))
    run = run if run.output is None else replace(run, output=Path(os.path.abspath(run.output)))
    with where_begun(Path(os.path.abspath(home)), lambda line: print(line, file=sys.stderr)):
        return _carry_out(request, overrides, run, task)


def _carry_out(request: "Request", overrides: Sequence[str], run: RunOptions, task: str | None) -> int:
    """Do so, once it is known which folder relative paths mean."""
    from orrery.runs.going_on import folder_of
    from orrery.tasks.finetuning.recipe import recipe_for

    request = replace(request, task=gone_on(request.task, run))
    recipe = recipe_for(request, overrides, os.environ)
    if task is not None and recipe.task != task:
        message = f"{request.task} is a recipe of the task {recipe.task}, not {task}"
        raise UsageError(message, f"orrery finetune {request.task}")
    files = [Path(each) for each in (request.task, request.model, request.train, request.val) if each]
    if request.file is not None:
        return trained(recipe, files, run, None, folder_of(request.file, run.output) if run.resume else None)
    return trained(recipe, files, run, overrides)


def trained(
    recipe: "Recipe", files: Sequence[Path], run: RunOptions, overrides: Sequence[str] | None, home: Path | None = None
) -> int:
    """Train and score a recipe, or print it, and return the exit code.

    ``files`` must not be replaced; ``overrides`` are the flags beside which the recipe was found, none of a file;
    ``home`` is the folder of a run that goes on wherever it lies.
    """
    from orrery.runs.going_on import asked_for
    from orrery.tasks.finetuning.seeds import with_seeds
    from orrery.training.progress import find_reporter

    if run.print_config:
        print(as_yaml(recipe), end="")
        return 0
    check_places(recipe)
    folder = run.output or home or runs_folder() / recipe.name
    how: dict[str, Any] = {"seeds": run.seeds, "resume": run.resume, "overwrite": run.overwrite}
    how["asked"] = None if overrides is None else asked_for(overrides, os.environ)
    done = with_seeds(recipe, folder, find_reporter, print, inputs=files, **how)
    return 128 + done.signal if done.signal else 0
