"""Texts that are not UTF-8 although their bytes may pass for it: UTF-16 and UTF-32, with and without a mark."""

_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""The longer ones first: one of UTF-16 begins one of UTF-32."""
_SHORTEST = 4
"""Bytes. Of fewer nothing can be said."""
_CONTROLS = bytes({*range(32)} - set(b"\t\n\v\f\r\x1b"))
"""What texts in UTF-8 hardly have, and the upper halves of most alphabets' letters in UTF-16 are."""


def foreign_coding(head: bytes) -> str | None:
    """Return the name, as iconv knows it, of the UTF-16 or UTF-32 that a file begins with, or nothing for others.

    Without a mark it is told by its letters: in UTF-32 two of four bytes are (almost) always 0, in UTF-16 every
    second one is a control character in most alphabets. Chinese and Japanese in UTF-16 are not told: their bytes
    are no UTF-8 either.
    """
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if len(head) < _SHORTEST:
        return None
    first, second, third, fourth = (head[start::4] for start in range(4))
    if not any(fourth) and max(third, default=0) <= 0x10 and _share(first + second, b"\0") <= 0.5 and any(first):
        return "UTF-32LE"
    if not any(first) and max(second, default=0) <= 0x10 and _share(third + fourth, b"\0") <= 0.5 and any(fourth):
        return "UTF-32BE"
    even, odd = (_share(head[start::2], _CONTROLS) for start in range(2))
    return "UTF-16LE" if odd >= 0.7 and even <= 0.2 else "UTF-16BE" if even >= 0.7 and odd <= 0.2 else None


def _share(content: bytes, of: bytes) -> float:
    """Return which share of the bytes are among ``of``."""
    return (len(content) - len(content.translate(None, of))) / max(1, len(content))
