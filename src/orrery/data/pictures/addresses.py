"""Pictures as texts: ``data:image/png;base64,...``, as a column of a table or a client holds them."""

import base64
import binascii
from urllib.parse import unquote

import numpy as np
import torch
from numpy.typing import NDArray

from orrery.data.pictures.png import write_png
from orrery.errors import DataError

BEGINNING = "data:image/png;base64,"
LONGEST_HEAD = 100
"""Characters before the content, at most."""


def as_address(pixels: NDArray[np.uint8]) -> str:
    """Return the address of pixels [rows, columns, channels]."""
    content = write_png(torch.from_numpy(pixels.transpose(2, 0, 1).copy()))
    return BEGINNING + base64.b64encode(content).decode()


def is_address(text: str) -> bool:
    """Say whether a text holds a picture itself; letters of either size begin it (RFC 2397)."""
    return text[:5].lower() == "data:"


def content_of(address: str, where: str = "") -> bytes:
    """Return the bytes of the file that stands in an address, whose lines may be broken and whose signs may be escaped.

    Raises:
        DataError: it holds none.
    """
    said = where or repr(address[:40])
    head, comma, content = address.partition(",")
    if not comma or not head.lower().endswith(";base64") or len(head) > LONGEST_HEAD:
        raise DataError(f"{said} is no picture in base64", f"it begins with {BEGINNING}")
    content = unquote(content) if "%" in content else content
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except binascii.Error as error:
        raise DataError(f"{said} is no base64: {error}", f"it begins with {BEGINNING}") from None
