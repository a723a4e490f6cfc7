"""``orrery.train``: what the verb does, from Python."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.models.default_device import on_cpu_by_default
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, load_recipe, read_yaml
from orrery.runs.default_recipe import is_text, recipe_for
from orrery.runs.execute import execute
from orrery.runs.going_on import FOUND_FOR_A_TEXT, as_begun, asked_for, folder_of, where_begun
from orrery.runs.run import Run
from orrery.settings import runs_folder
from orrery.training.folder import CONFIG
from orrery.training.progress import Reporter, Silent, find_reporter
from orrery.training.signals import pass_on


@on_cpu_by_default
def train(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> Run:
    """Train what a recipe describes, and return the run: the same as ``orrery train``.

    A signal is passed on once the run is saved; ``resume=True`` continues.

    Args:
        recipe: a recipe's file, its content as a mapping, or a text (a file or a folder), for which one is chosen; with
            ``resume`` the folder of a run too.
        output: the run's folder; by default ``runs/`` and the recipe's name.
        resume: continue from the newest sound checkpoint of the folder; a run goes on in the working folder that it was
            begun from, so that its relative paths mean what they did.
        overwrite: replace the run that is in the folder; it stays until the new one has its first checkpoint.
        quiet: show no progress.

    Raises:
        UsageError: the recipe or the folder cannot be used.
        DataError: the text cannot.
        RunError: the loss or a weight is not finite.
    """
    inputs = [Path(recipe)] if isinstance(recipe, str | Path) else []
    folder = None if output is None else Path(output)
    if resume and isinstance(recipe, str | Path) and (home := folder_of(Path(recipe), folder)) is not None:
        home = Path(os.path.abspath(home))
        recipe, folder = home / CONFIG, home
    else:
        home = None
    reporter = Silent() if quiet else find_reporter()
    with where_begun(home, reporter.line):
        return _trained(recipe, folder, reporter, inputs, resume=resume, overwrite=overwrite)


def _trained(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    folder: Path | None,
    reporter: Reporter,
    inputs: list[Path],
    *,
    resume: bool,
    overwrite: bool,
) -> Run:
    """Train, once it is known which folder is meant."""
    settled_recipe = _recipe(recipe)
    folder = folder or runs_folder() / settled_recipe.name
    if resume and isinstance(recipe, str | Path) and is_text(Path(recipe)):
        settled_recipe = as_begun(settled_recipe, folder, asked_for((), os.environ), FOUND_FOR_A_TEXT)
    outcome = execute(settled_recipe, folder, reporter, resume=resume, overwrite=overwrite, inputs=inputs)
    pass_on(outcome.signal)
    return Run(folder.absolute(), outcome.step, outcome.best)


def _recipe(recipe: Recipe | Mapping[str, Any] | str | Path) -> Recipe:
    """Return the recipe that is meant."""
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Mapping):
        return check_recipe(recipe, "the recipe")
    path = Path(recipe)
    if is_text(path):
        return recipe_for(path, (), os.environ)
    if "stages" in read_yaml(path):
        raise UsageError(f"{path} has stages, and this trains one model", f"orrery train {path} trains them all")
    return load_recipe(path, (), os.environ)
