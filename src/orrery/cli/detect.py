"""``orrery detect``: the things in a picture, and the box around each."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, SHARE
from orrery.cli.pictures import ask_of_pictures
from orrery.cli.places import MODEL, PICTURE


def detect(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    threshold: Annotated[float, SHARE] = 0.5,
    batch_size: Annotated[int, COUNT] = 8,
    json: Annotated[bool, Parameter(negative="")] = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print each thing in each picture, how sure the model is, and its box: left, top, right and bottom in pixels.

    Args:
        model: A run, a checkpoint or a folder of a model that finds things.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        threshold: How sure the model must be of a thing to name it.
        batch_size: Pictures read at once.
        json: Print a JSON object a line.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask_of_pictures("object-detection", model, device, dtype, pictures, batch_size, json, threshold=threshold)
