"""PNG files as numbers: eight bits a channel, grey or coloured, with or without transparency (ISO/IEC 15948)."""

import struct
import zlib
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.data.pictures.pillow import MISSING
from orrery.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Channels by the type of colour: grey, colour, grey with transparency, colour with transparency."""
MOST_PIXELS = 1 << 26
"""A file of a few bytes may say that it is larger than any memory."""
_BAND = 1 << 20
"""Pixels that are laid on white at once."""
_LONGEST = 1 << 17
"""Rows and columns together of a file whose lines are guessed from three pixels: each diagonal is a step."""


def read_png(content: bytes, name: str = "the image") -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of a file, 0 to 255; of transparency what shows on white.

    Args:
        content: the file's bytes.
        name: what an error calls it.

    Raises:
        DataError: it is no PNG, is broken or too large, or uses palettes, 16 bits or interlacing.
    """
    if not content.startswith(SIGNATURE):
        _refuse(name, "is no PNG file", "convert it to PNG, or give an array")
    try:
        parts = list(_chunks(content[len(SIGNATURE) :]))
        columns, rows, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", dict(parts)[b"IHDR"])
        if bits != 8 or colour not in CHANNELS or interlaced:
            _refuse(name, "has a palette, another depth than 8 bits, or is interlaced", "save it as plain 8-bit PNG")
        if not 0 < rows * columns <= MOST_PIXELS:
            _refuse(name, f"has {rows:,} rows of {columns:,} pixels", "make it smaller")
        size = rows * (1 + columns * CHANNELS[colour])
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(b"".join(part for kind, part in parts if kind == b"IDAT"), size)
        if len(raw) != size:
            _refuse(name, "ends too early", "get the file again from its source")
    except (struct.error, zlib.error, KeyError) as error:
        _refuse(name, f"is broken: {error}", "get the file again from its source")
    return _opaque(_unfiltered(raw, rows, CHANNELS[colour], name).reshape(rows, columns, -1))


def write_png(pixels: UInt8[Tensor, "channels rows columns"]) -> bytes:
    """Return a file of one or three channels."""
    channels, rows, columns = pixels.shape
    lines = pixels.permute(1, 2, 0).reshape(rows, columns * channels).contiguous().numpy()
    raw = b"".join(b"\0" + line.tobytes() for line in lines)
    head = struct.pack(">IIBBBBB", columns, rows, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each part, whose sums have to be right."""
    at = 0
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        part = content[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", content[at + 8 + length : at + 12 + length])
        if checksum != zlib.crc32(kind + part):
            raise zlib.error(f"the sum of {kind!r} is wrong")
        yield kind, part
        at += 12 + length


def _unfiltered(raw: bytes, rows: int, channels: int, name: str) -> np.ndarray:
    """Undo the filters: each byte is less than it was by something to its left (a), above (b) or above left (c).

    Raises:
        DataError: there is no such filter, or a side is longer than can be undone in seconds.
    """
    lines = np.frombuffer(raw, np.uint8).reshape(rows, -1)
    kinds, values = lines[:, 0], lines[:, 1:].reshape(rows, -1, channels)
    if (wrong := kinds > 4).any():
        _refuse(name, f"has a line with the filter {kinds[wrong][0]}", "get the file again from its source")
    if kinds.max(initial=0) <= 2:
        return _by_lines(values, kinds)
    if sum(values.shape[:2]) > _LONGEST:
        _refuse(name, f"has sides of {rows:,} and {values.shape[1]:,} pixels", MISSING)
    return _by_diagonals(values, kinds)


def _by_lines(values: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Undo lines that hold nothing (0), the pixel to the left (1) or the pixel above (2)."""
    found = np.empty_like(values)
    above = np.zeros_like(values[0])
    for row, kind in enumerate(kinds.tolist()):
        if kind == 1:
            values[row].cumsum(0, dtype=np.uint8, out=found[row])
        else:
            np.add(values[row], above if kind == 2 else 0, out=found[row])
        above = found[row]
    return found


def _by_diagonals(values: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Undo lines of any kind: what a pixel needs stands on the two diagonals before its own, so one is done at once."""
    rows, columns, channels = values.shape
    wide = columns + 1  # a column of nothing stands to the left, a row of nothing above
    found = np.zeros(((rows + 1) * wide, channels), dtype=np.uint8)
    given = values.reshape(-1, channels)
    for diagonal in range(rows + columns - 1):
        top = max(0, diagonal - columns + 1)
        count = min(rows, diagonal + 1) - top
        at = top * wide + diagonal - top  # of the pixel above left of the first one; the next stands a row below
        c, b, a = (_along(found, at + off, wide - 1, count).astype(np.int16) for off in (0, 1, wide))
        guessed = _guessed(kinds[top : top + count, None], a, b, c)
        new = _along(given, top * columns + diagonal - top, columns - 1, count) + guessed
        _along(found, at + wide + 1, wide - 1, count)[:] = new.astype(np.uint8)
    return found.reshape(rows + 1, wide, channels)[1:, 1:]


def _along(flat: np.ndarray, start: int, step: int, count: int) -> np.ndarray:
    """Return so many pixels, each a step behind the one before."""
    return flat[start : start + step * (count - 1) + 1 : step] if step else flat[start : start + 1]


def _guessed(kinds: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return what the filter of each line guesses; Paeth's is the one of the three that is nearest to ``a + b - c``."""
    to_a, to_b = b - c, a - c
    far_a, far_b, far_c = abs(to_a), abs(to_b), abs(to_a + to_b)
    nearest = np.where((far_a <= far_b) & (far_a <= far_c), a, np.where(far_b <= far_c, b, c))
    if kinds.min() == 4:
        return nearest
    return np.choose(kinds, [np.zeros_like(a), a, b, (a + b) >> 1, nearest])


def _opaque(pixels: np.ndarray) -> UInt8[Tensor, "channels rows columns"]:
    """Return what shows on white, computed in bands of rows."""
    rows, columns, channels = pixels.shape
    shown = torch.from_numpy(pixels).permute(2, 0, 1)
    if channels in (1, 3):
        return shown.contiguous()
    found = torch.empty(channels - 1, rows, columns, dtype=torch.uint8)
    high = max(1, _BAND // columns)
    for top in range(0, rows, high):
        band = shown[:, top : top + high].double()
        share = band[-1:] / 255
        found[:, top : top + high] = (share * band[:-1] + (1 - share) * 255).round().to(torch.uint8)
    return found


def _refuse(name: str, reason: str, hint: str) -> NoReturn:
    raise DataError(f"{name} {reason}", hint)
