"""The wire format of protocol buffers, as far as SentencePiece models need it."""

import struct
from collections.abc import Iterator

from orrery.errors import ModelFileError

HINT = "the file is damaged or no SentencePiece model: take it from its origin again"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an int for a varint, else its bytes.

    Raises `ModelFileError` with the place where the message cannot be read on.
    """
    at = 0
    while at < len(message):
        key, after = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, after)
            yield number, value
            continue
        if kind == _BYTES:
            length, after = _varint(message, after)
        elif kind in (_EIGHT, _FOUR):
            length = 8 if kind == _EIGHT else 4
        else:
            raise ModelFileError(f"byte {at} starts a field of unknown kind {kind}", HINT)
        at, start = after + length, after
        if at > len(message):
            raise ModelFileError(f"the field at byte {start} ends {at - len(message):,} bytes after its message", HINT)
        yield number, message[start:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number whose seven-bit groups start at ``at``, and the place after it."""
    result = 0
    for place, byte in enumerate(message[at : at + 10]):
        result |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return result, at + place + 1
    raise ModelFileError(f"the number at byte {at} does not end", HINT)


def written(number: int, value: int | bytes) -> bytes:
    """Return one field of a message: an int as a varint, bytes with their length before them."""
    if isinstance(value, int):
        return _groups(number << 3 | _VARINT) + _groups(value)
    return _groups(number << 3 | _BYTES) + _groups(len(value)) + value


def written_float(number: int, value: float) -> bytes:
    """Return one field with a float32."""
    return _groups(number << 3 | _FOUR) + struct.pack("<f", value)


def _groups(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
