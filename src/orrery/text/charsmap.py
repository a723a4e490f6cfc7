r"""SentencePiece's compiled normalisation rules, as steps that the engine runs.

The rules are a double-array trie (Aoe 1989) from UTF-8 to places in a list of replacements; the longest rule that
matches is applied at each place of the text. The published lists are NFKC with exceptions for single characters.

The engine's own step for such rules applies the shortest one to a whole grapheme: it drops accents and leaves most
Hangul apart. So the list is read here, written as NFKC with its exceptions, and every rule tried against the result.

Differs from SentencePiece: marks that are joined with no letter can come out in NFKC's order.
"""

import struct
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, normalizers

from orrery.errors import ModelFileError
from orrery.text.protobuf import HINT

Units = npt.NDArray[np.uint32]
Steps = list[normalizers.Normalizer]

BREAK = "\ufff0"
"""Not assigned: NFKC joins nothing across it."""

HIDDEN = 0x10FF00
"""Private characters that stand for those which NFKC would change and the rules do not."""

DOUBLE = "\u0340\u0341\u0343\u0344"
"""Marks of Latin and Greek that NFKC takes for others."""

NFKC = normalizers.NFKC()

MOST_EXCEPTIONS = 64
MOST_STEPS = 1 << 20

_LEAF, _LABEL = 1 << 8, (1 << 31) | 0xFF
_BYTES = np.arange(1, 256, dtype=np.int64)


def steps(charsmap: bytes) -> Steps:
    """Return the engine's normalizers for the rules.

    Raises `ModelFileError` where the trie is damaged, or where the engine cannot do what the rules say.
    """
    known = rules(charsmap)
    if not known:
        return []
    forms: tuple[Steps, ...] = ([NFKC], [NFKC, normalizers.Lowercase(), NFKC])
    for form in forms:
        found = _with_exceptions(form, known)
        if found and not any(map(_differs(found, known), known)):
            return found
    raise ModelFileError(
        f"its {len(known):,} normalisation rules are neither NFKC nor NFKC in lower case with few exceptions",
        "give the tokenizer.json that is published with the model",
    )


def _with_exceptions(form: Steps, known: dict[str, str]) -> Steps:
    """Return the form between the single characters that it treats otherwise; none where they are too many."""
    differs = _differs(form, known)
    exceptions: defaultdict[str, list[str]] = defaultdict(list)
    for key, value in known.items():
        if len(key) == 1 and differs(key):
            exceptions[value].append(key)
    untouched = [key for key in _compatible() if key not in known and differs(key)]
    if len(exceptions) + len(untouched) > MOST_EXCEPTIONS:
        return []
    hidden = [(key, chr(HIDDEN + place)) for place, key in enumerate(untouched)]
    return [
        *(normalizers.Replace(key, stand_in) for key, stand_in in hidden),
        *(normalizers.Replace(Regex(_any(found)), value) for value, found in sorted(exceptions.items())),
        normalizers.Replace(Regex(_between_marks(known)), BREAK),
        *form,
        normalizers.Replace(BREAK, ""),
        *(normalizers.Replace(stand_in, key) for key, stand_in in hidden),
    ]


def _between_marks(known: Iterable[str]) -> str:
    """Return the pattern of the empty places before a mark where no rule reaches across.

    NFKC looks past such a mark for one that joins the letter; SentencePiece stops. After a letter that matters
    only for marks that are themselves two.
    """
    before: defaultdict[str, set[str]] = defaultdict(set)
    for key in known:
        for first, second in pairwise(key):
            if _mark(second) and (_mark(first) or second in DOUBLE):
                before[second].add(first)
    after = {second: f"(?<!{_any(firsts)})(?={second})" for second, firsts in sorted(before.items())}
    # A place at the very start would be no place before a letter, and the engine panics on it.
    double = [rf"(?<=[\s\S]){after.get(mark, f'(?={mark})')}" for mark in DOUBLE]
    others = f"(?!{_any(before)})" if before else ""
    return "|".join([*double, rf"(?<=\p{{M}})(?=\p{{M}})(?:{'|'.join([others, *after.values()])})"])


def _mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _differs(form: Steps, known: dict[str, str]) -> Callable[[str], bool]:
    """Return the question whether a text comes out of the form otherwise than out of the rules."""
    normalize = normalizers.Sequence(form).normalize_str
    return lambda key: normalize(key) != known.get(key, key)


def _compatible() -> Iterator[str]:
    """Yield every character that NFKC changes."""
    for code in range(sys.maxunicode + 1):
        if unicodedata.normalize("NFKC", chr(code)) != chr(code):
            yield chr(code)


def _any(characters: Iterable[str]) -> str:
    return "[" + "".join(f"\\x{{{ord(character):x}}}" for character in sorted(characters)) + "]"


def rules(charsmap: bytes) -> dict[str, str]:
    """Return what the rules replace, and by what. Raises `ModelFileError` where the trie is damaged."""
    size = struct.unpack_from("<I", charsmap)[0] if len(charsmap) >= 4 else 0
    if not size or size % 4 or size + 4 > len(charsmap):
        raise ModelFileError(f"the normalisation rules say {size:,} of {len(charsmap):,} bytes are their trie", HINT)
    units, texts = np.frombuffer(charsmap, "<u4", size // 4, 4), charsmap[4 + size :]
    return {_text(key): _text(_until_zero(texts, place)) for key, place in _leaves(units)}


def _leaves(units: Units) -> Iterator[tuple[bytes, int]]:
    """Yield each key of the trie with the place of its replacement."""
    waiting = [(b"", _child(units, 0))]
    # Keys share their ends, so there are more ways through the trie than units.
    for _ in range(MOST_STEPS):
        if not waiting:
            return
        key, base = waiting.pop()
        places = base ^ _BYTES
        # A child outside the array is none: unit 0, the root, carries no label.
        places[places >= len(units)] = 0
        for label in _BYTES[(units[places] & _LABEL) == _BYTES].tolist():
            longer, child = key + bytes([label]), _child(units, base ^ label)
            if units[base ^ label] & _LEAF:
                yield longer, _value(units, child)
            waiting.append((longer, child))
    raise ModelFileError("the trie of the normalisation rules has no end", HINT)


def _child(units: Units, at: int) -> int:
    """Return the place from which a node's children are reached."""
    unit = int(units[at])
    return at ^ ((unit >> 10) << ((unit & (1 << 9)) >> 6))


def _value(units: Units, child: int) -> int:
    if child >= len(units):
        raise ModelFileError("the trie of the normalisation rules points outside itself", HINT)
    return int(units[child]) & 0x7FFFFFFF


def _until_zero(texts: bytes, start: int) -> bytes:
    end = texts.find(b"\0", start)
    if start > len(texts) or end < 0:
        raise ModelFileError("a normalisation rule's replacement lies outside the rules", HINT)
    return texts[start:end]


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ModelFileError(f"a normalisation rule holds {content!r}, which is not UTF-8", HINT) from None
