"""How the verbs about pictures ask: files in, an answer each."""

from collections.abc import Sequence
from typing import Any

from orrery.cli.asking import ask
from orrery.cli.texts import InputText, TextReading
from orrery.errors import UsageError

COLUMN = "picture"
"""What a picture's file is called in JSON."""


def ask_of_pictures(
    task: str,
    model: str,
    device: str,
    dtype: str,
    pictures: Sequence[str],
    batch_size: int,
    json: bool,
    **settings: Any,
) -> None:
    """Ask a model a task about files of pictures, and print its answers as lines or as JSON.

    Args:
        task: its name.
        model: what ``orrery.load`` takes.
        device: where it is loaded to.
        dtype: what its weights become.
        pictures: the files.
        batch_size: how many are read at once.
        json: whether JSON is printed.
        settings: of the task.

    Raises:
        UsageError: there is no picture.
    """
    if not pictures:
        raise UsageError("there is no picture", "give the path of a picture file, or several")
    read = [InputText(f"picture {n}", {COLUMN: path}) for n, path in enumerate(pictures, start=1)]
    ask(
        task, model, device, dtype, read, None, TextReading(column=COLUMN, batch_size=batch_size, json=json), **settings
    )
