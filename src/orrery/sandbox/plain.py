"""Plain values as bytes, between a program that is not trusted and its tests: no pickle, no code, no objects.

Numbers, texts, bytes, ``None``, lists, tuples, sets, dicts, ranges, ``Fraction`` and ``Decimal`` arrive as themselves
(those of a subclass as their base). Anything else stays where it is and is known by a number.
"""

import json
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST = 16 << 20
"""Bytes of a message."""

_LENGTH = struct.Struct("<I")
_SMALL = 2**53

Keep = Callable[[Any], list[Any]]


def encode(value: Any, keep: Keep) -> Any:
    """Return a value as JSON can say it; ``keep`` says what stands for one that is not plain."""
    kind = next((base for base in type(value).__mro__ if base in _ENCODERS), None)
    return keep(value) if kind is None else _ENCODERS[kind](value, keep)


def decode(said: Any, find: Callable[[str, Any], Any]) -> Any:
    """Return what was encoded; ``find(kind, payload)`` returns what stands for a value that is not plain."""
    if not isinstance(said, list):
        return said
    kind, payload = said
    if kind in _DECODERS:
        return _DECODERS[kind](payload, lambda one: decode(one, find))
    return find(kind, payload)


def pack(message: Any) -> bytes:
    """Return a message with its length before it. Raises `ValueError` where it is too long."""
    content = json.dumps(message).encode()
    if len(content) > MOST:
        raise ValueError(f"a value of more than {MOST >> 20} MiB between the program and its tests")
    return _LENGTH.pack(len(content)) + content


def unpack(read: Callable[[int], bytes]) -> Any:
    """Return the next message. Raises `EOFError` where there is none, `ValueError` where it is no message."""
    (length,) = _LENGTH.unpack(_exactly(read, _LENGTH.size))
    if length > MOST:
        raise ValueError(f"a message of {length:,} bytes")
    return json.loads(_exactly(read, length))


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = read(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _whole(value: int, keep: Keep) -> Any:
    number = int.__index__(value)
    return number if abs(number) < _SMALL else ["int", hex(number)]


def _items(kind: str, base: Any) -> Callable[[Any, Keep], Any]:
    return lambda value, keep: [kind, [encode(item, keep) for item in base.__iter__(value)]]


_ENCODERS: dict[type, Callable[[Any, Keep], Any]] = {
    type(None): lambda value, keep: None,
    bool: lambda value, keep: value,
    int: _whole,
    float: lambda value, keep: ["float", float.hex(value)],
    complex: lambda value, keep: ["complex", [float.hex(value.real), float.hex(value.imag)]],
    str: lambda value, keep: str.__str__(value),
    bytes: lambda value, keep: ["bytes", bytes.hex(value)],
    bytearray: lambda value, keep: ["bytearray", bytearray.hex(value)],
    list: _items("list", list),
    tuple: _items("tuple", tuple),
    set: _items("set", set),
    frozenset: _items("frozenset", frozenset),
    range: lambda value, keep: ["range", [["int", hex(part)] for part in (value.start, value.stop, value.step)]],
    dict: lambda value, keep: ["dict", [[encode(k, keep), encode(v, keep)] for k, v in dict.items(value)]],
    Fraction: lambda value, keep: ["fraction", f"{value.numerator}/{value.denominator}"],
    Decimal: lambda value, keep: ["decimal", Decimal.__str__(value)],
}
_DECODERS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "int": lambda said, inner: int(said, 16),
    "float": lambda said, inner: float.fromhex(said),
    "complex": lambda said, inner: complex(float.fromhex(said[0]), float.fromhex(said[1])),
    "bytes": lambda said, inner: bytes.fromhex(said),
    "bytearray": lambda said, inner: bytearray.fromhex(said),
    "list": lambda said, inner: [inner(one) for one in said],
    "tuple": lambda said, inner: tuple(inner(one) for one in said),
    "set": lambda said, inner: {inner(one) for one in said},
    "frozenset": lambda said, inner: frozenset(inner(one) for one in said),
    "range": lambda said, inner: range(*(inner(one) for one in said)),
    "dict": lambda said, inner: {inner(key): inner(value) for key, value in said},
    "fraction": lambda said, inner: Fraction(said),
    "decimal": lambda said, inner: Decimal(said),
}
