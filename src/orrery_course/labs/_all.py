"""All labs into one folder: each seed is kept as soon as it is measured, and the page written again after each lab."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from orrery.checkpoints.disk import write_text
from orrery.checkpoints.outputs import OutputFolder
from orrery.errors import OrreryError, UsageError
from orrery.reports.making import made
from orrery_course.labs._lab import FILES, LabResult, carry_out, questions
from orrery_course.labs._page import commands, page
from orrery_course.labs._unfinished import FOLDER as UNFINISHED
from orrery_course.labs._unfinished import Unfinished

PAGE = "index.html"


def results(folder: Path) -> dict[str, LabResult]:
    """Return what finished labs left in a folder, by name, in the order of their names.

    Raises:
        DataError: a file of a lab is none.
    """
    by_name = {name: LabResult.read(folder / name) for name in questions()}
    return {name: result for name, result in by_name.items() if result is not None}


def carry_out_all(
    folder: Path,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    overwrite: bool = False,
    names: Iterable[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, LabResult]:
    """Run every lab that is not in the folder yet, and return all; a killed call loses no more than one seed.

    A lab that cannot run keeps no other from running: its error is raised after the last.

    Args:
        folder: where each lab has a folder of its own, and the page lies beside them.
        seeds: one run for each.
        quick: smaller models and fewer steps.
        overwrite: run those again that are there with other seeds, or were not as quick.
        names: which labs; by default all.
        say: is told what is done.

    Raises:
        UsageError: a lab is there with other seeds, or another ``quick``; the folder holds something else.
        OrreryError: a lab could not run, the first of them.
    """
    refuse_others(folder)
    kept = {name: one for name, one in results(folder).items() if same(one, seeds, quick)}
    chosen = [name for name in (questions() if names is None else names) if name not in kept]
    targets = {name: OutputFolder(folder / name, FILES, overwrite=overwrite) for name in chosen}
    for name in kept:
        say(f"{name} is there already")
    unfinished = Unfinished(folder)
    errors: list[OrreryError] = []
    for name, target in targets.items():
        try:
            outcome = carry_out(name, seeds, quick=quick, say=say, measure=unfinished)
        except OrreryError as error:
            say(f"{name} could not run: {error}")
            errors.append(error)
            continue
        with target.aside() as fresh:
            outcome.write(fresh)
        unfinished.forget(name)
        write_page(folder)
    for first in errors:
        raise first
    write_page(folder)
    return results(folder)


def refuse_others(folder: Path) -> None:
    """Refuse a folder with something in it that no earlier call has written."""
    ours = {*questions(), PAGE, UNFINISHED}
    others = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    others = sorted(name for name in others if name not in ours and not name.startswith("."))
    if others:
        raise UsageError(f"{folder} holds {others[0]}, which is of no lab", "choose another folder with --output")


def same(one: LabResult, seeds: Sequence[int], quick: bool) -> bool:
    """Say whether a lab was run with these seeds, and as quickly."""
    return list(one.runs) == list(seeds) and one.quick == quick


def write_page(folder: Path) -> Path:
    """Write the page of what the folder has, and nothing else, and return its path.

    Raises:
        UsageError: no lab has been finished there.
    """
    by_name = results(folder)
    if not by_name:
        raise UsageError(f"{folder} has no finished lab", "run them first: orrery lab --all")
    write_text(folder / PAGE, page(by_name, made(commands(by_name))))
    return folder / PAGE
