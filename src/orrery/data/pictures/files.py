"""The pixels of a picture file: PNG by itself, and with Pillow also JPEG, WebP, GIF, BMP, palettes and 16 bits."""

import io
import re
import struct
import warnings
from pathlib import Path
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
_OTHERS = {
    "a HEIC picture": rb"....ftyp(hei|hev|mif1|msf1)",
    "an AVIF picture": rb"....ftypavi",
    "a TIFF picture": rb"II\*\0|MM\0\*",
    "an SVG drawing": rb"\s*(<\?xml[^>]*>\s*)?<(!DOCTYPE )?svg",
    "a PDF document": rb"%PDF",
    "a page of the web": rb"(?i:\s*<(!doctype )?html)",
    "a pointer of Git LFS, which `git lfs pull` replaces": rb"version https://git-lfs",
}
"""What files of other kinds are, by how they begin."""
MOST_BYTES = 1 << 28
"""A file of more is no picture of ``MOST_PIXELS`` pixels in any of these formats."""
_MOST = {"WEBP": 1 << 25}
"""What is read of a kind, where less than ``MOST_PIXELS``: its decoder holds a picture four times."""
_DEEP = ("I", "F")
_SEE_THROUGH = ("RGBA", "LA", "PA", "RGBa", "La")
_ORIENTATION = 0x0112
_BAND = 1 << 20
"""Pixels that are converted at once."""
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
                if not 0 < rows * columns <= _MOST.get(opened.format or "", MOST_PIXELS):
                    raise DataError(f"{name} has {rows:,} rows of {columns:,} pixels", "make it smaller")
                opened.load()
                return pixels_of(opened)
    except DataError:
        raise
    except image.DecompressionBombError:
        raise DataError(f"{name} has more than {MOST_PIXELS:,} pixels", "make it smaller") from None
    except Exception as error:  # Pillow's readers raise nearly anything of broken files
        known = content.startswith(BEGINNINGS)
        other = next(
            (f", but {what}" for what, begins in _OTHERS.items() if re.match(begins, content[:512], re.DOTALL)), ""
        )
        none = f"is no picture file (PNG, JPEG, WebP, GIF, BMP){other}"
        reason = f"is broken: {str(error)[:120]}" if known else none
        raise DataError(f"{name} {reason}", _HINT if known else "convert it to PNG, or give an array") from None


def read_file(path: Path, name: str = "") -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of the file at a path; errors as in ``read_pixels``.

    Raises:
        DataError: it is no file, or is larger than any picture that is read.
    """
    named = name or str(path)
    try:
        if not path.is_file():
            reason = "is no file" if path.exists() else "cannot be read: No such file or directory"
            raise DataError(f"{named} {reason}", "check the path")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{named} cannot be read: {getattr(error, 'strerror', error)}", "check the path") from None
    if len(content) > MOST_BYTES:
        raise DataError(f"{named} has more than {MOST_BYTES:,} bytes", "make the picture smaller")
    return read_pixels(content, named)


def dimensions(content: bytes) -> tuple[int, int] | None:
    """Return the rows and columns of a file by its head, turned as its EXIF orientation says.

    Nothing where that is damaged, as ``read_pixels`` will say.
    """
    image = pillow()
    try:
        if image is None:
            columns, rows = struct.unpack(">II", content[16:24])
            return rows, columns
        with image.open(io.BytesIO(content), formats=FORMATS) as opened:
            turned = opened.getexif().get(_ORIENTATION, 1) > 4
            return (opened.width, opened.height) if turned else (opened.height, opened.width)
    except Exception:  # Pillow's readers raise nearly anything of broken files
        return None


def pixels_of(picture: Any) -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of a picture of Pillow's, as ``read_pixels`` does of a file.

    A picture is gone through in bands of rows: what becomes colours, or is laid on white, is never all of it at once.
    """
    turned = _upright(picture)
    white = _white_of(turned) if turned.mode.startswith(_DEEP) else 0.0
    found, rows = None, max(1, _BAND // turned.width)
    for top in range(0, turned.height, rows):
        band = _colours(turned.crop((0, top, turned.width, min(top + rows, turned.height))), white)
        if found is None:
            found = np.empty((1 if band.ndim == 2 else 3, turned.height, turned.width), dtype=np.uint8)
        found[:, top : top + rows] = band if band.ndim == 2 else band.transpose(2, 0, 1)
    return torch.from_numpy(found)


def _upright(picture: Any) -> Any:
    """Return a picture turned as its EXIF orientation says."""
    if picture.getexif().get(_ORIENTATION, 1) == 1:
        return picture
    from PIL import ImageOps

    return ImageOps.exif_transpose(picture)


def _colours(band: Any, white: float) -> np.ndarray:
    """Return rows of a picture as bytes, ``[rows, columns]`` where they are grey, else ``[rows, columns, 3]``."""
    if white:
        band = _eight_bits(band, white)
    if "transparency" in band.info or band.mode in _SEE_THROUGH:
        on_white = _on_white(band.convert("RGBA"))
        band = on_white.convert("L") if band.mode in ("L", "LA", "La") else on_white
    elif band.mode != "L":
        band = band.convert("L" if band.mode == "1" else "RGB")
    return np.asarray(band)


def _white_of(picture: Any) -> float:
    """Return what is white in a grey picture of 16 bits or more: 65,535, unless a pixel is beyond it."""
    _, most = picture.getextrema()
    return 255.0 if most <= 255 and picture.mode == "F" else max(65535.0, float(most))


def _eight_bits(picture: Any, white: float) -> Any:
    """Return a grey picture of 16 bits or more as one of 8."""
    image = pillow()
    values = np.asarray(picture, dtype=np.float64)
    return image.fromarray(np.clip(values * (255 / white), 0, 255).round().astype(np.uint8))


def _on_white(picture: Any) -> Any:
    image: Any = pillow()
    white = image.new("RGBA", picture.size, (255, 255, 255, 255))
    white.alpha_composite(picture)
    return white.convert("RGB")


LARGEST = 255
_NUMBERED = ("1", "L", "P", "I;16", "I;16B", "I")
"""Modes of Pillow in which a pixel is one number: of one bit, eight or sixteen, of which else a half would be read."""


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
                indexed = opened.mode in _NUMBERED and opened.size[0] * opened.size[1] <= MOST_PIXELS
                array = np.array(opened) if indexed else None
        except Exception:  # what is wrong with the file is said where its pixels are read
            array = None
        if array is not None and array.max(initial=0) > LARGEST:
            message = f"{name} has the number {array.max()}, and the largest of a mask is {LARGEST}"
            raise DataError(message, "number its labels from 0 to 254; 255 is what belongs to nothing")
        found = read_pixels(content, name) if array is None else torch.from_numpy(array.astype(np.uint8))[None]
    if len(found) != 1:
        raise DataError(f"{name} has colours, and a mask has one number a pixel", "save it as grey, or with a palette")
    return found[0]
