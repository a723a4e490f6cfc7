"""PNG files as numbers: eight bits a channel, grey or coloured, with or without transparency (ISO/IEC 15948)."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Channels by the type of colour: grey, colour, grey with transparency, colour with transparency."""
MOST_PIXELS = 1 << 26
"""A file of a few bytes may say that it is larger than any memory."""


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
    """Undo the filters: each byte is less than it was by something to its left (a), above (b) or above left (c)."""
    width = len(raw) // rows
    lines, above = [], np.zeros(width - 1, dtype=np.uint8)
    for begin in range(0, len(raw), width):
        kind, values = raw[begin], np.frombuffer(raw, np.uint8, width - 1, begin + 1)
        if kind not in _FILTERS:
            _refuse(name, f"has a line with the filter {kind}", "get the file again from its source")
        above = _FILTERS[kind](values, above, channels)
        lines.append(above)
    return np.stack(lines)


def _left(values: np.ndarray, above: np.ndarray, channels: int) -> np.ndarray:
    return values.reshape(-1, channels).cumsum(0, dtype=np.uint8).reshape(-1)


def _average(values: np.ndarray, above: np.ndarray, channels: int) -> np.ndarray:
    return _one_by_one(values, above, channels, lambda a, b, c: (a + b) // 2)


def _paeth(values: np.ndarray, above: np.ndarray, channels: int) -> np.ndarray:
    """Add the one of the three that is nearest to ``a + b - c``; the first of them, where several are."""
    return _one_by_one(values, above, channels, lambda a, b, c: min((a, b, c), key=lambda one: abs(a + b - c - one)))


def _one_by_one(
    values: np.ndarray, above: np.ndarray, channels: int, guess: Callable[[int, int, int], int]
) -> np.ndarray:
    before = [0] * channels
    left, up = before + values.tolist(), before + above.tolist()
    for at in range(channels, len(left)):
        left[at] = (left[at] + guess(left[at - channels], up[at], up[at - channels])) % 256
    return np.array(left[channels:], dtype=np.uint8)


_FILTERS: Mapping[int, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    0: lambda values, above, channels: values,
    1: _left,
    2: lambda values, above, channels: values + above,
    3: _average,
    4: _paeth,
}


def _opaque(pixels: np.ndarray) -> UInt8[Tensor, "channels rows columns"]:
    """Return what shows on white."""
    shown = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    if len(shown) in (1, 3):
        return shown.contiguous()
    share = shown[-1:].double() / 255
    return (share * shown[:-1] + (1 - share) * 255).round().to(torch.uint8)


def _refuse(name: str, reason: str, hint: str) -> NoReturn:
    raise DataError(f"{name} {reason}", hint)
