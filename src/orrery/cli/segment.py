"""``orrery segment``: what each part of a picture belongs to."""

from typing import Annotated

from orrery.cli.pictures import READING, PictureReading, ask_of_pictures
from orrery.cli.places import MODEL, PICTURE


def segment(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    reading: PictureReading = READING,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the labels that each picture shows and the share of it that each has, the largest first: a line a picture.

    Args:
        model: A run, a checkpoint or a folder of a model with a head for pixels.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        reading: How pictures are read, and how answers are printed, masks as PNG files in base64 in JSON.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask_of_pictures("image-segmentation", model, device, dtype, pictures, reading)
