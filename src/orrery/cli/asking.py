"""How the verbs of tasks ask: a pipeline over what is read, its answers printed as lines or as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orrery.cli.texts import InputText, TextReading, one_line, print_json, run

if TYPE_CHECKING:
    from orrery.tasks import Pipeline


def ask(
    task: str, model: str, device: str, dtype: str,
    given: Sequence[InputText], inputs: list[Any] | None, reading: TextReading,
    **settings: Any,
) -> None:  # fmt: skip
    """Ask a model a task, and print its answers as lines or as JSON; an input without a text has none.

    Args:
        task: its name.
        model: what ``orrery.load`` takes.
        device: where it is loaded to.
        dtype: what its weights become.
        given: what was read.
        inputs: the same as the task takes it; by default the one text of each.
        reading: how many are computed at once, and whether JSON is printed.
        settings: of the task.
    """
    from orrery.tasks import pipeline

    tell(
        pipeline(task, model, device=device, dtype=dtype, batch_size=reading.batch_size, **settings),
        given,
        inputs,
        reading,
    )


def tell(pipe: "Pipeline", given: Sequence[InputText], inputs: list[Any] | None, reading: TextReading) -> None:
    """Print what a pipeline answers; arguments as above."""
    if inputs is None:
        inputs = [one.fields[reading.column] for one in given]
    answers = run(pipe.several, given, inputs)
    for one, item, answer in zip(given, inputs, answers, strict=True):
        if reading.json:
            print_json({**one.fields, pipe.said: pipe.told(answer)})
            continue
        if pipe.titled and len(given) > 1:
            print(f"# {one_line(one.fields[reading.column])}")
        for line in pipe.lines(item, answer):
            print(one_line(line))
