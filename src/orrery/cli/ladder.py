"""``orrery ladder``: a family of sizes trained, a law fitted to all but the largest, and what it missed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.tables import print_table
from orrery.settings import runs_folder

if TYPE_CHECKING:
    from orrery.studies.ladder.settings import Ladder


def ladder(
    config: Path,
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    output: Path | None = None,
    resume: bool = False,
    dry_run: bool = False,
) -> int:
    """Train one model in several sizes, and predict the loss of the largest by the law that the smaller ones follow.

    Leaves a run folder of each training, ladder.json, ladder.html and SVG figures: the law with its band, the
    prediction with its interval, what was measured, and the miss. Ctrl-C keeps what is done; --resume goes on from
    there.

    Args:
        config: A recipe with a section ``ladder``, such as recipes/scaling-ladder.yaml.
        overrides: Keys of the recipe with new values, such as --ladder.tokens_per_parameter 10.
        output: The folder; by default runs/ and the recipe's name.
        resume: Go on with the ladder in the folder.
        dry_run: Print the sizes with their tokens, operations and minutes, and stop; a few steps are timed.
    """
    from orrery.studies.ladder.settings import load_ladder

    staged_ladder = load_ladder(config, overrides, os.environ)
    return (
        dry(staged_ladder)
        if dry_run
        else carry_out(staged_ladder, output or runs_folder() / staged_ladder.base.name, resume)
    )


def dry(ladder: "Ladder") -> int:
    """Print what would be trained, and for how long."""
    from orrery.studies.ladder.run import rehearse
    from orrery.studies.ladder.summary import SIZES, planned, planned_rows

    rehearsal = rehearse(ladder, lambda line: print(line, flush=True))
    columns = SIZES[: SIZES.index("planned")]
    print_table((*columns, "trainings", "each"), planned_rows(rehearsal))
    print(f"\n{planned(rehearsal)}")
    return 0


def carry_out(ladder_asked: "Ladder", folder: Path, resume: bool) -> int:
    """Train, fit, predict, and print the tables."""
    from orrery.studies.ladder.forecast import forecasts
    from orrery.studies.ladder.run import kept, train_ladder
    from orrery.studies.ladder.summary import LAWS, SIZES, law_rows, size_rows
    from orrery.training.progress import find_reporter

    ladder = train_ladder(ladder_asked, folder, lambda line: print(line, flush=True), find_reporter, resume=resume)
    if ladder.signal is not None:
        print("stopped; --resume goes on with what is not done")
        return 128 + ladder.signal
    print()
    print_table(SIZES, size_rows(ladder))
    print()
    print_table(LAWS, law_rows(forecasts(ladder)))
    print(f"\nThe page with the curves: {kept(folder).page}")
    return 0
