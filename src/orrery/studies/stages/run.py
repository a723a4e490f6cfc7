"""Stages run in their order: what is finished stays, what was interrupted goes on, what was changed is refused."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from orrery.checkpoints.strict_yaml import parse
from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, refuse_changes
from orrery.runs.execute import execute
from orrery.studies.kept import Say, held
from orrery.studies.stages.folder import Done, StagesFolder, tensors_hash, weights_hash
from orrery.studies.stages.recipe import Stage, Staged
from orrery.studies.training import Watch
from orrery.tasks.finetuning.seeds import with_seeds
from orrery.training.folder import CONFIG, FINAL, RunFolder


def run_stages(
    staged: Staged,
    path: Path,
    reporter: Watch,
    say: Say,
    *,
    resume: bool,
    overwrite: bool,
    inputs: Iterable[Path] = (),
) -> int | None:
    """Train the stages that are not finished, and write the report; return the signal that stopped it, if one did.

    Args:
        staged: the recipe.
        path: the folder; each stage's run lies in it by the stage's name.
        reporter: makes what shows the progress of one stage.
        say: told which stage it is.
        resume: keep what is finished, and continue what was interrupted.
        overwrite: train every stage again; the run of each stays until the new one has its first checkpoint.
        inputs: files that no run may replace.

    Raises:
        UsageError: the folder holds stages and neither is asked for, or a stage is not as it was.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other", "choose one")
    folder, files = StagesFolder(path, staged), list(inputs)
    recipes = {stage.name: stage.recipe(path) for stage in staged.stages}
    with held(path, folder.refuse_others):
        refuse_stages(folder, recipes, resume, overwrite)
        for stage in staged.stages if overwrite else ():
            folder.note(stage, Done(replaces=tensors_hash(folder.of(stage)) if folder.holds(stage) else None))
        for number, stage in enumerate(staged.stages, start=1):
            say(f"stage {number} of {len(staged.stages)}: {stage.name}{origin(stage)}")
            if resume and finished(folder, stage, recipes[stage.name]):
                say(f"{stage.name} is finished: {folder.of(stage)}")
                continue
            signal = _train(folder, stage, recipes[stage.name], reporter, say, files)
            if signal:
                return signal
        if staged.settings.report is not None:
            from orrery.studies.stages.report import write_report

            write_report(staged, path, say)
    return None


def refuse_stages(folder: StagesFolder, recipes: dict[str, Recipe], resume: bool, overwrite: bool) -> None:
    """Refuse before the first step what could not be continued or must not be replaced.

    Raises:
        UsageError: there are stages, and nothing says what becomes of them; or a stage's recipe was changed.
    """
    there = [stage for stage in folder.staged.stages if folder.holds(stage)]
    if there and not resume and not overwrite:
        names = ", ".join(stage.name for stage in there)
        raise UsageError(
            f"{folder.path} holds stages: {names}", "add --resume to go on with them or --overwrite to replace them"
        )
    for stage in there if resume else ():
        if folder.replaced(stage):
            continue
        before = saved_recipe(folder.of(stage))
        if before is not None:
            try:
                refuse_changes(before, recipes[stage.name])
            except UsageError as error:
                hint = f"take the old value, remove {folder.of(stage)} to train it again, or choose another --output"
                raise UsageError(f"stage {stage.name}: {error.message}", hint) from error


def saved_recipe(run: Path) -> dict[str, object] | None:
    """Return the recipe that a run was begun with; nothing where there is none yet."""
    file = run / CONFIG
    return parse(file.read_text(encoding="utf-8")) if file.is_file() else None


def finished(folder: StagesFolder, stage: Stage, recipe: Recipe) -> bool:
    """Say whether a stage has nothing left to do.

    Raises:
        UsageError: a stage that it began from has other weights since.
    """
    done = folder.state().get(stage.name)
    if done is None or not folder.holds(stage) or folder.replaced(stage):
        return False
    now = folder.begun(stage)
    if changed := [name for name in now if now[name] != done.begun.get(name)]:
        message = f"stage {stage.name} began from another {changed[0]} than {folder.path / changed[0]} holds now"
        raise UsageError(message, f"remove {folder.of(stage)} to train it again")
    before = saved_recipe(folder.of(stage))
    if done.weights is None or not (folder.of(stage) / FINAL).is_dir():
        return False
    same = before is not None and check_recipe(before, CONFIG).training == recipe.training
    return same and done.weights == weights_hash(folder.of(stage))


def origin(stage: Stage) -> str:
    """Say which stages one begins from."""
    return f", with {' and '.join(stage.begins)}" if stage.begins else ""


def _train(
    folder: StagesFolder,
    stage: Stage,
    recipe: Recipe,
    reporter: Watch,
    say: Say,
    files: list[Path],
) -> int | None:
    """Train a stage to its end, and note that it is finished; return the signal that stopped it, if one did.

    A run that is to be replaced stays until the new one has its first checkpoint: a stop before that leaves it to be
    replaced when the stages go on.
    """
    own, there, replaced = folder.of(stage), folder.holds(stage), folder.replaced(stage)
    before = folder.state().get(stage.name, Done()) if there else Done()
    done = Done(folder.begun(stage), None, before.seconds, before.steps, before.replaces)
    folder.note(stage, done)
    began = perf_counter()
    how: dict[str, Any] = {"resume": there and not replaced, "overwrite": replaced}
    if recipe.task is None:
        signal = execute(recipe, own, reporter(), inputs=files, **how).signal
    else:
        signal = with_seeds(recipe, own, reporter, say, inputs=files, **how).signal
    records = RunFolder(own).records()
    done = replace(done, seconds=done.seconds + perf_counter() - began, steps=records[-1]["step"] if records else 0)
    folder.note(stage, done if signal else replace(done, weights=weights_hash(own), replaces=None))
    return signal
