"""``orrery caption``: what a picture shows, in words."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.asking import ask
from orrery.cli.beam_options import CAPTIONS, Captions, given
from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL, PICTURE
from orrery.cli.texts import InputText, TextReading

COLUMN = "picture"


def caption(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    search: Captions = CAPTIONS,
    batch_size: Annotated[int, COUNT] = 8,
    json: Annotated[bool, Parameter(negative="")] = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the caption of each picture, on a line; a line end in it is shown escaped.

    Args:
        model: A run, a checkpoint or a folder of a model that reads pictures and writes.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        search: How captions are searched for.
        batch_size: Pictures read at once.
        json: Print a JSON object a line.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    from orrery.errors import UsageError

    if not pictures:
        raise UsageError("there is no picture", "give the path of a picture file, or several")
    read = [InputText(f"picture {n}", {COLUMN: path}) for n, path in enumerate(pictures, start=1)]
    reading = TextReading(column=COLUMN, batch_size=batch_size, json=json)
    ask("image-to-text", model, device, dtype, read, None, reading, **given(search))
