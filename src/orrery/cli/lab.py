"""``orrery lab``: the experiments of the course, one question and one figure each."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.checkpoints.outputs import OutputFolder
from orrery.cli.numbers import SEED_EACH
from orrery.cli.tables import print_table
from orrery.errors import RunError
from orrery.labs import FILES, carry_out, load_lab, questions
from orrery.settings import runs_folder

if TYPE_CHECKING:
    from orrery.labs import LabResult


def lab(
    name: str | None = None,
    *,
    seeds: Annotated[tuple[int, ...], SEED_EACH] = (0, 1, 2),
    quick: Annotated[bool, Parameter(negative="")] = False,
    output: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Run an experiment with several seeds, draw its figure, and hold what it claims; without a name list them all.

    Writes figure.svg and numbers.json. Exit code 1 if a claim does not hold for every seed.

    Args:
        name: The lab.
        seeds: One run for each, such as --seeds 0 1 2.
        quick: Smaller models and fewer steps: under a minute a seed.
        output: The folder; by default runs/lab-NAME.
        overwrite: Replace what an earlier call left in the folder.
    """
    if name is None:
        print_table(("lab", "question"), list(questions().items()))
        return
    if name not in questions():
        load_lab(name)  # refuses it by name
    folder = output or runs_folder() / f"lab-{name}"
    target = OutputFolder(folder, FILES, overwrite=overwrite)
    print(questions()[name], flush=True)
    outcome = carry_out(name, seeds, quick=quick, say=lambda line: print(line, file=sys.stderr, flush=True))
    with target.aside() as fresh:
        outcome.write(fresh)
    show(outcome)
    print(f"\nThe figure: {folder / 'figure.svg'}; the numbers: {folder / 'numbers.json'}")
    if outcome.failed:
        failed = "; ".join(f"{claim} (by {outcome.margins[claim]:.4g})" for claim in outcome.failed)
        raise RunError(f"a claim does not hold for every seed: {failed}", "numbers.json has each seed's numbers")


def show(outcome: "LabResult") -> None:
    """Print the numbers of each seed in columns, and every claim with the margin of its worst seed."""
    rows = [flat(numbers) for numbers in outcome.runs.values()]
    print_table(
        ("", *(f"seed {seed}" for seed in outcome.runs)),
        [(key, *(readable(row[key]) for row in rows)) for key in rows[0]],
    )
    print()
    verdicts = {True: "does NOT hold", False: "holds"}
    print_table(
        ("claim", "", "margin"),
        [(claim, verdicts[claim in outcome.failed], f"{margin:.3g}") for claim, margin in outcome.margins.items()],
    )


def readable(number: int | float) -> str:
    """Return a count whole, another number with four figures."""
    return f"{number:,}" if isinstance(number, int) else f"{number:.4g}"


def flat(numbers: object, path: str = "") -> dict[str, int | float]:
    """Return the numbers of a tree by their path; lists, which are for the figure, are left out."""
    if isinstance(numbers, dict):
        return {
            key: value
            for name, part in numbers.items()
            for key, value in flat(part, f"{path}, {name}" if path else str(name)).items()
        }
    return {path: numbers} if isinstance(numbers, int | float) else {}
