"""SentencePiece's normalisation: the longest rule at each place, then its treatment of spaces.

Paper: Kudo and Richardson 2018, section 3.2.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from io import StringIO

from orrery.text.sentencepiece import charsmap
from orrery.text.sentencepiece.file import SPACE, USER, Model


class Longest:
    """Find the longest of some strings at a place of a text."""

    def __init__(self, strings: Iterable[str]) -> None:
        """Take strings of one character or more."""
        self._strings = frozenset(strings)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for string in self._strings:
            lengths[string[0]].add(len(string))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def at(self, text: str, place: int) -> str:
        """Return the longest one that begins at ``place``, or nothing."""
        lengths = self._lengths.get(text[place], ())
        return next((found for n in lengths if (found := text[place : place + n]) in self._strings), "")

    def pattern(self) -> str:
        """Return an expression that holds wherever one of the strings begins, and at few other places."""
        alone = {string for string in self._strings if len(string) == 1}
        longer = [string for string in self._strings if len(string) > 1]
        if not longer:
            return _any(alone)
        return f"{_any(alone)}|{_any(string[0] for string in longer)}(?={_any(string[1] for string in longer)})"


class Normaliser:
    """Text to the text that is cut into pieces: ``"A  b "`` to ``"▁A▁b"``."""

    def __init__(self, model: Model) -> None:
        """Read the rules of the model. Raises `ModelFileError` where they are damaged."""
        self._rules = charsmap.rules(model.charsmap) if model.charsmap else {}
        self._longest = Longest(self._rules)
        self._kept = Longest(model.ids(USER))
        self._prefix = SPACE if model.prefixed else ""
        self._squeezed = model.squeezed
        # Most places of most texts are passed over by this one search.
        self._stop = re.compile("|".join((" ", self._longest.pattern(), self._kept.pattern())))

    def __call__(self, text: str) -> tuple[str, Sequence[int]]:
        """Return the normalised text, and for each of its characters and its end the place in ``text``."""
        if not text:
            return "", array("I", [0])
        made, origins = StringIO(), array("I", [0] * len(self._prefix))
        made.write(self._prefix)
        spaced, place = self._squeezed, 0
        while place < len(text):
            found = self._stop.search(text, place)
            end = found.start() if found else len(text)
            if end > place:
                made.write(text[place:end])
                origins.extend(range(place, end))
                spaced = False
            if found:
                old, new = self._changed(text, end)
                new = new.lstrip(" ") if spaced else new
                made.write(new)
                origins.extend([end] * len(new))
                spaced = self._squeezed and new.endswith(" ") if new else spaced
                end += len(old)
            place = end
        normal = made.getvalue().replace(" ", SPACE)
        # The spaces at the end, those that the text itself spells in the escaped way too.
        kept = normal.rstrip(SPACE) if self._squeezed else normal
        origins.append(len(text))
        del origins[len(kept) + 1 :]
        return kept, origins

    def _changed(self, text: str, place: int) -> tuple[str, str]:
        """Return what stands at ``place`` and what it becomes: a piece of the user itself, else as the rules say."""
        if kept := self._kept.at(text, place):
            return kept, kept
        found = self._longest.at(text, place) or text[place]
        return found, self._rules.get(found, found)


def _any(characters: Iterable[str]) -> str:
    """Return a class with the characters; all beyond U+FFFF for any of them, which are slow to tell apart."""
    codes = {min(ord(character), 0x10000) for character in characters}
    found = "".join(r"\U00010000-\U0010ffff" if code == 0x10000 else f"\\u{code:04x}" for code in sorted(codes))
    return f"[{found}]" if found else "(?!)"
