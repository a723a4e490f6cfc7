"""``orrery detect``: the things in a picture, and the box around each."""

from typing import Annotated

from orrery.cli.numbers import SHARE
from orrery.cli.pictures import READING, PictureReading, ask_of_pictures
from orrery.cli.places import MODEL, PICTURE


def detect(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    threshold: Annotated[float, SHARE] = 0.5,
    reading: PictureReading = READING,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print each thing in each picture, how sure the model is, and its box: left, top, right and bottom in pixels.

    Args:
        model: A run, a checkpoint or a folder of a model that finds things.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        threshold: How sure the model must be of a thing to name it.
        reading: How pictures are read, and how answers are printed.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask_of_pictures("object-detection", model, device, dtype, pictures, reading, threshold=threshold)
