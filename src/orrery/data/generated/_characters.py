"""The characters that have a name of their own in Unicode."""

import sys
import unicodedata
from functools import cache

from orrery.data.splits import held_back

EVERY = 10
MADE_FROM = "Unicode's character database in the running Python (Unicode licence)"


@cache
def named_characters(part: str) -> tuple[tuple[str, str], ...]:
    """Return (character, name) of a part, in the order of code points; ``val`` has every tenth, by the name's sha256.

    Left out are white space, and names that are made from a number or from a syllable's letters: those end in the code
    point (``CJK UNIFIED IDEOGRAPH-4E00``) or are Hangul syllables.
    """
    names = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        name = unicodedata.name(character, "")
        if not name or not character.strip() or name.endswith(f"-{code:04X}") or name.startswith("HANGUL SYLLABLE"):
            continue
        if held_back(name, EVERY) == (part == "val"):
            names.append((character, name))
    return tuple(names)
