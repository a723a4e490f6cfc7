"""``orrery segment``: what each part of a picture belongs to."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT
from orrery.cli.pictures import ask_of_pictures
from orrery.cli.places import MODEL, PICTURE


def segment(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    batch_size: Annotated[int, COUNT] = 8,
    json: Annotated[bool, Parameter(negative="")] = False,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the labels that each picture shows and the share of it that each has, the largest first: a line a picture.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for pixels.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        batch_size: Pictures read at once.
        json: Print a JSON object a line, with the masks as PNG files in base64.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask_of_pictures("image-segmentation", model, device, dtype, pictures, batch_size, json)
