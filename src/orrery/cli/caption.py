"""``orrery caption``: what a picture shows, in words."""

from typing import Annotated

from orrery.cli.beam_options import CAPTIONS, Captions, given
from orrery.cli.pictures import READING, PictureReading, ask_of_pictures
from orrery.cli.places import MODEL, PICTURE


def caption(
    model: Annotated[str, MODEL],
    /,
    *pictures: Annotated[str, PICTURE],
    search: Captions = CAPTIONS,
    reading: PictureReading = READING,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print the caption of each picture, on a line; a line end in it is shown escaped.

    Args:
        model: A run, a checkpoint or a folder of a model that reads pictures and writes.
        pictures: Files of pictures: PNG, and with the extra vision also JPEG, WebP, GIF and BMP.
        search: How captions are searched for.
        reading: How pictures are read, and how answers are printed.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    ask_of_pictures("image-to-text", model, device, dtype, pictures, reading, **given(search))
