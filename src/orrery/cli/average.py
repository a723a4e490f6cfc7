"""``orrery average``: the mean of the weights of several checkpoints or models, as a model."""

from pathlib import Path
from typing import Annotated

from orrery.cli.numbers import COUNT, ONE_OR_MORE, SEED_EACH
from orrery.cli.places import MODEL


def average(
    model: Annotated[str, MODEL],
    out: Path,
    /,
    *,
    last: Annotated[int | None, COUNT] = None,
    checkpoints: Annotated[tuple[int, ...], SEED_EACH] = (),
    others: Annotated[tuple[str, ...], MODEL, ONE_OR_MORE] = (),
    overwrite: bool = False,
) -> None:
    """Write the mean of the weights of a run's last checkpoints, or of several models, as a model to use.

    It is computed in float64, read back and compared. A run keeps as many checkpoints as checkpoints.keep says.

    Args:
        model: A run; with --others any model.
        out: The folder to write.
        last: How many of the run's newest checkpoints to average, by default 5.
        checkpoints: Steps of the run's checkpoints to average, in the place of --last.
        others: Models to average with the first, in the place of its checkpoints.
        overwrite: Replace the average that is in the folder, which holds nothing else.
    """
    from orrery.exchange.exporting import average as averages

    averaged = averages.average(model, out, last=last, checkpoints=checkpoints, others=others, overwrite=overwrite)
    for folder in averaged.folders:
        print(f"read {folder}")
    layout = "Hugging Face layout" if averaged.layout == "hf" else "spec.json and our own names"
    print(f"{averaged.path}: the mean of {len(averaged.folders)} models, {averaged.parameters:,} parameters; {layout}")
