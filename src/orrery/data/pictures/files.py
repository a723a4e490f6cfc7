"""The pixels of a picture file: PNG by itself, and with Pillow also JPEG, WebP, GIF, BMP, palettes and 16 bits."""

import io
import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.data.pictures.pillow import MISSING, pillow
from orrery.data.pictures.png import MOST_PIXELS, SIGNATURE, read_png
from orrery.errors import DataError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""What is opened; of others Pillow's readers are old, slow, or start programs."""
BEGINNINGS = (SIGNATURE, b"\xff\xd8\xff", b"RIFF", b"GIF8", b"BM")
"""How files of these kinds begin."""
_DEEP = ("I", "F")
_HINT = "get the file again from its source"


def read_pixels(content: bytes, name: str = "the picture") -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of a file, 0 to 255: one channel where it is grey, else three.

    It is turned as its EXIF orientation says, of several frames the first is taken, what is transparent shows white,
    16 bits become the nearest of 8, and CMYK, palettes and one bit become colours or grey.

    Args:
        content: the file's bytes.
        name: what an error calls it.

    Raises:
        DataError: it is of no kind that is read, broken or cut short, or has more than ``MOST_PIXELS`` pixels.
    """
    image = pillow()
    if image is None:
        if not content.startswith(SIGNATURE):
            raise DataError(f"{name} is no PNG file, and only those are read without Pillow", MISSING)
        return read_png(content, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of bombs and odd metadata: sizes are bounded here
            with image.open(io.BytesIO(content), formats=FORMATS) as opened:
                columns, rows = opened.size
                if not 0 < rows * columns <= MOST_PIXELS:
                    raise DataError(f"{name} has {rows:,} rows of {columns:,} pixels", "make it smaller")
                opened.load()
                return pixels_of(opened)
    except DataError:
        raise
    except image.DecompressionBombError:
        raise DataError(f"{name} has more than {MOST_PIXELS:,} pixels", "make it smaller") from None
    except Exception as error:  # Pillow's readers raise nearly anything of broken files
        known = content.startswith(BEGINNINGS)
        reason = f"is broken: {str(error)[:120]}" if known else "is no picture file (PNG, JPEG, WebP, GIF, BMP)"
        raise DataError(f"{name} {reason}", _HINT if known else "convert it to PNG, or give an array") from None


def pixels_of(picture: Any) -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of a picture of Pillow's, as ``read_pixels`` does of a file."""
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(picture)
    if turned.mode.startswith(_DEEP):
        turned = _eight_bits(turned)
    if "transparency" in turned.info or turned.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        on_white = _on_white(turned.convert("RGBA"))
        turned = on_white.convert("L") if turned.mode in ("L", "LA", "La") else on_white
    elif turned.mode != "L":
        turned = turned.convert("L" if turned.mode == "1" else "RGB")
    array = np.array(turned)
    return torch.from_numpy(array if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))).reshape(
        -1, turned.height, turned.width
    )


def _eight_bits(picture: Any) -> Any:
    """Return a grey picture of 16 bits or more as one of 8: white is 65,535 unless a pixel is beyond it."""
    image = pillow()
    values = np.asarray(picture, dtype=np.float64)
    whole = 255.0 if values.max(initial=0) <= 255 and picture.mode == "F" else max(65535.0, values.max(initial=0))
    return image.fromarray(np.clip(values * (255 / whole), 0, 255).round().astype(np.uint8))


def _on_white(picture: Any) -> Any:
    image: Any = pillow()
    white = image.new("RGBA", picture.size, (255, 255, 255, 255))
    white.alpha_composite(picture)
    return white.convert("RGB")


def read_indices(content: bytes, name: str = "the mask") -> UInt8[Tensor, "rows columns"]:
    """Return the numbers of a file with one number a pixel: grey levels, or the places of a palette.

    Args:
        content: the file's bytes.
        name: what an error calls it.

    Raises:
        DataError: it is broken, has colours, or numbers above 255.
    """
    image = pillow()
    if image is None or not content.startswith(SIGNATURE):
        found = read_pixels(content, name)
    else:
        try:
            with image.open(io.BytesIO(content), formats=("PNG",)) as opened:
                indexed = opened.mode in ("P", "L") and opened.size[0] * opened.size[1] <= MOST_PIXELS
                array = np.array(opened) if indexed else None
        except Exception:  # what is wrong with the file is said where its pixels are read
            array = None
        found = read_pixels(content, name) if array is None else torch.from_numpy(array)[None]
    if len(found) != 1:
        raise DataError(f"{name} has colours, and a mask has one number a pixel", "save it as grey, or with a palette")
    return found[0]
