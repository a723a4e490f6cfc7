"""``orrery lab``: the experiments of the course, one question and one figure each."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.checkpoints.outputs import OutputFolder
from orrery.cli.numbers import SEED_EACH
from orrery.cli.tables import print_table
from orrery.errors import RunError, UsageError
from orrery.settings import runs_folder
from orrery_course.labs import FILES, carry_out, carry_out_all, flat, load_lab, questions, readable, results, write_page

if TYPE_CHECKING:
    from orrery_course.labs import LabResult


def lab(
    name: str | None = None,
    *,
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    report: Annotated[bool, Parameter(negative="")] = False,
    seeds: Annotated[tuple[int, ...], SEED_EACH] = (0, 1, 2),
    quick: Annotated[bool, Parameter(negative="")] = False,
    output: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Run an experiment with several seeds, draw its figure, and hold what it claims; without a name list them all.

    Writes figure.svg and numbers.json. Exit code 1 if a claim does not hold for every seed.

    Args:
        name: The lab.
        every: Run all of them, about an hour, and write one page; a killed call, given again, goes on.
        report: Write the page again from what the folder of --all has, and run nothing.
        seeds: One run for each, such as --seeds 0 1 2.
        quick: Smaller models and fewer steps: under a minute a seed.
        output: The folder; by default runs/lab-NAME, of all labs runs/labs.
        overwrite: Replace what an earlier call left in the folder; with --all only labs of other seeds.
    """
    if every or report:
        _refuse_name(name, "--all" if every else "--report")
        _all(output or runs_folder() / "labs", seeds, run=every, quick=quick, overwrite=overwrite)
    elif name is None:
        print_table(("lab", "question"), list(questions().items()))
    else:
        _one(name, output or runs_folder() / f"lab-{name}", seeds, quick=quick, overwrite=overwrite)


def _refuse_name(name: str | None, flag: str) -> None:
    if name is not None:
        raise UsageError(f"{flag} is for all labs, and {name} is one", f"leave out {flag}, or the name")


def _one(name: str, folder: Path, seeds: tuple[int, ...], *, quick: bool, overwrite: bool) -> None:
    """Run one lab, print what it found, and fail where a claim does not hold."""
    if name not in questions():
        load_lab(name)  # refuses it by name
    target = OutputFolder(folder, FILES, overwrite=overwrite)
    print(questions()[name], flush=True)
    outcome = carry_out(name, seeds, quick=quick, say=_say)
    with target.aside() as fresh:
        outcome.write(fresh)
    show(outcome)
    print(f"\nThe figure: {folder / 'figure.svg'}; the numbers: {folder / 'numbers.json'}")
    if outcome.failed:
        failed = "; ".join(f"{claim} (by {outcome.margins[claim]:.4g})" for claim in outcome.failed)
        raise RunError(f"a claim does not hold for every seed: {failed}", "numbers.json has each seed's numbers")


def _all(folder: Path, seeds: tuple[int, ...], *, run: bool, quick: bool, overwrite: bool) -> None:
    """Run what the folder does not have, write the page, and fail where a claim of any lab does not hold."""
    if run:
        carry_out_all(folder, seeds, quick=quick, overwrite=overwrite, say=_say)
    path = write_page(folder)
    results_by_lab = results(folder)
    print_table(
        ("lab", "claims", "", "minutes"),
        [
            (name, str(len(one.margins)), verdict(bool(one.failed)), f"{one.minutes:.1f}")
            for name, one in results_by_lab.items()
        ],
    )
    print(f"\nThe page: {path}")
    if failed := [name for name, one in results_by_lab.items() if one.failed]:
        raise RunError(f"a claim does not hold for every seed in: {', '.join(failed)}", "the page shows which")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def verdict(failed: bool) -> str:
    """Return what is said of claims."""
    return "does NOT hold" if failed else "holds"


def show(outcome: "LabResult") -> None:
    """Print the numbers of each seed in columns, and every claim with the margin of its worst seed."""
    rows = [flat(numbers) for numbers in outcome.runs.values()]
    print_table(
        ("", *(f"seed {seed}" for seed in outcome.runs)),
        [(key, *(readable(row[key]) for row in rows)) for key in rows[0]],
    )
    print()
    print_table(
        ("claim", "", "margin"),
        [(claim, verdict(claim in outcome.failed), f"{margin:.3g}") for claim, margin in outcome.margins.items()],
    )
