"""SentencePiece's compiled normalisation rules.

They are a double-array trie (Aoe 1989) from UTF-8 to places in a list of replacements.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from orrery.errors import ModelFileError
from orrery.text.sentencepiece.protobuf import HINT

Units = tuple[int, ...]

MOST_STEPS = 1 << 20
LONGEST_KEY, LONGEST_REPLACEMENT = 64, 256
"""Bytes of what a rule replaces, and by what: those of NFKC have 12 and 33."""

_LEAF, _LABEL = 1 << 8, (1 << 31) | 0xFF


@lru_cache(maxsize=2)
def rules(charsmap: bytes) -> Mapping[str, str]:
    """Return what the rules replace, and by what. Raises `ModelFileError` where the trie is damaged."""
    size = struct.unpack_from("<I", charsmap)[0] if len(charsmap) >= 4 else 0
    if not size or size % 4 or size + 4 > len(charsmap):
        raise ModelFileError(f"the normalisation rules say {size:,} of {len(charsmap):,} bytes are their trie", HINT)
    units, texts = struct.unpack_from(f"<{size // 4}I", charsmap, 4), charsmap[4 + size :]
    by = cache(lambda place: _text(_until_zero(texts, place)))  # most of 225,000 rules share theirs with others
    return {_text(key): by(place) for key, place in _leaves(units)}


def longest_replacement(charsmap: bytes) -> int:
    """Return the bytes of the longest text that any rule can put in, without following the trie."""
    size = struct.unpack_from("<I", charsmap)[0] if len(charsmap) >= 4 else 0
    return max(map(len, charsmap[4 + size :].split(b"\0")))


def _leaves(units: Units) -> Iterator[tuple[bytes, int]]:
    """Yield each key of the trie with the place of its replacement."""
    children = _children(units)
    waiting = [(b"", _child(units, 0))]
    # Keys share their ends, so there are more ways through the trie than units.
    for _ in range(MOST_STEPS):
        if not waiting:
            return
        key, base = waiting.pop()
        for label in children.get(base, ()):
            longer, child = key + bytes([label]), _child(units, base ^ label)
            if len(longer) > LONGEST_KEY:
                raise ModelFileError(f"a normalisation rule replaces more than {LONGEST_KEY} bytes at once", HINT)
            if units[base ^ label] & _LEAF:
                yield longer, _value(units, child)
            waiting.append((longer, child))
    raise ModelFileError("the trie of the normalisation rules has no end", HINT)


def _children(units: Units) -> dict[int, list[int]]:
    """Return the labels below each node, by the place from which they are reached."""
    labels: defaultdict[int, list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        if 0 < (label := unit & _LABEL) < 256:
            labels[place ^ label].append(label)
    return labels


def _child(units: Units, at: int) -> int:
    """Return the place from which a node's children are reached."""
    unit = units[at]
    return at ^ ((unit >> 10) << ((unit & (1 << 9)) >> 6))


def _value(units: Units, child: int) -> int:
    if child >= len(units):
        raise ModelFileError("the trie of the normalisation rules points outside itself", HINT)
    return units[child] & 0x7FFFFFFF


def _until_zero(texts: bytes, start: int) -> bytes:
    end = texts.find(b"\0", start)
    if start > len(texts) or end < 0:
        raise ModelFileError("a normalisation rule's replacement lies outside the rules", HINT)
    if end - start > LONGEST_REPLACEMENT:
        raise ModelFileError(
            f"a normalisation rule puts {end - start:,} bytes in, more than {LONGEST_REPLACEMENT}", HINT
        )
    return texts[start:end]


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ModelFileError(f"a normalisation rule holds {content!r}, which is not UTF-8", HINT) from None
