"""How the verbs about pictures ask: files in, an answer each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from orrery.cli.asking import ask
from orrery.cli.numbers import COUNT
from orrery.cli.texts import InputText, TextReading
from orrery.errors import UsageError

COLUMN = "picture"
"""What a picture's file is called in JSON."""


@Parameter(name="*")
@dataclass(frozen=True)
class PictureReading:
    """How many pictures are read at once, and how answers are printed."""

    batch_size: Annotated[int, COUNT, Parameter(help="Pictures read at once.")] = 8
    json: Annotated[bool, Parameter(help="Print a JSON object a line.", negative="")] = False


READING = PictureReading()
"""What is done unless told otherwise."""


def ask_of_pictures(
    task: str,
    model: str,
    device: str,
    dtype: str,
    pictures: Sequence[str],
    reading: PictureReading,
    **settings: Any,
) -> None:
    """Ask a model a task about files of pictures, and print its answers as lines or as JSON.

    Args:
        task: its name.
        model: what ``orrery.load`` takes.
        device: where it is loaded to.
        dtype: what its weights become.
        pictures: the files.
        reading: how many are read at once, and whether JSON is printed.
        settings: of the task.

    Raises:
        UsageError: there is no picture.
    """
    if not pictures:
        raise UsageError("there is no picture", "give the path of a picture file, or several")
    read = [InputText(f"picture {n}", {COLUMN: path}) for n, path in enumerate(pictures, start=1)]
    how = TextReading(column=COLUMN, batch_size=reading.batch_size, json=reading.json)
    ask(task, model, device, dtype, read, None, how, **settings)
