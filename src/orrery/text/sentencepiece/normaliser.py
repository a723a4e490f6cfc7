"""SentencePiece's normalisation: the longest rule at each place, then its treatment of spaces.

Paper: Kudo and Richardson 2018, section 3.2.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from orrery.text.sentencepiece import charsmap
from orrery.text.sentencepiece.file import SPACE, USER, SentencePieceModel


class Longest:
    """Find the longest of some strings at a place of a text."""

    def __init__(self, strings: Iterable[str]) -> None:
        """Take strings of one character or more."""
        self._strings = frozenset(strings)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for string in self._strings:
            lengths[string[0]].add(len(string))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    @property
    def longest(self) -> int:
        """The length of the longest string."""
        return max(map(len, self._strings), default=0)

    def at(self, text: str, place: int) -> str:
        """Return the longest one that begins at ``place``, or nothing."""
        lengths = self._lengths.get(text[place], ())
        return next((part for n in lengths if (part := text[place : place + n]) in self._strings), "")


class Normaliser:
    """Text to the text that is cut into pieces: ``"A  b "`` to ``"▁A▁b"``."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Read the rules of the model. Raises `ModelFileError` where they are damaged."""
        self._rules = charsmap.rules(model.charsmap) if model.charsmap else {}
        self._longest = Longest(self._rules)
        self._kept = Longest(model.ids(USER))
        self.prefix = SPACE if model.prefixed else ""
        self.squeezed = model.squeezed
        # Two more: the search looks at the characters on both sides of a place.
        self.reach = 2 + max(self._longest.longest, self._kept.longest)
        # Most places of most texts are passed over by one search; a text of ASCII alone has far fewer to stop at.
        keys = [*self._rules, *model.ids(USER)]
        self._stop, self._plain_stop = _stops(keys), _stops(filter(str.isascii, keys))

    def __call__(self, text: str) -> tuple[str, Sequence[int]]:
        """Return the normalised text, and for each of its characters and its end the place in ``text``."""
        if not text:
            return "", array("I", [0])
        runs = list(self.runs(text, len(text), self.squeezed))
        origins = array("I", [0] * len(self.prefix))
        for _, places, _ in runs:
            origins.extend(places)
        normal = self.prefix + "".join(new for new, _, _ in runs).replace(" ", SPACE)
        # The spaces at the end, those that the text itself spells in the escaped way too.
        kept = normal.rstrip(SPACE) if self.squeezed else normal
        origins.append(len(text))
        del origins[len(kept) + 1 :]
        return kept, origins

    def whole(self, text: str) -> str:
        """Return the normalised text alone."""
        stop = self._plain_stop if text.isascii() else self._stop
        if text and text[0] != " " and not stop.search(text):
            normal = self.prefix + text.replace(" ", SPACE)
            return normal.rstrip(SPACE) if self.squeezed else normal
        return self.begin().push(text, final=True)

    def begin(self) -> "Normalising":
        """Return the normalisation of a text that comes part by part."""
        return Normalising(self)

    def runs(self, text: str, last: int, spaced: bool) -> Iterator[tuple[str, Sequence[int], int]]:
        """Yield what each part of a text becomes, the place of each character of that, and where the part ends.

        They go up to ``last`` or a little further.

        ``spaced`` says that a space goes before, or the beginning: spaces there are left out, if any are.
        """
        place = 0
        while place < last:
            if spaced and text[place] == " ":
                end = place
            else:
                match = self._stop.search(text, place, last + self.reach)
                end = min(match.start(), last) if match else last
            if end > place:
                yield text[place:end], range(place, end), end
                spaced = self.squeezed and text[end - 1] == " "
            place = end
            if place < last:
                old, new = self._changed(text, place)
                new = new.lstrip(" ") if spaced else new
                yield new, [place] * len(new), place + len(old)
                spaced = self.squeezed and new.endswith(" ") if new else spaced
                place += len(old)

    def _changed(self, text: str, place: int) -> tuple[str, str]:
        """Return what stands at ``place`` and what it becomes: a piece of the user itself, else as the rules say."""
        if kept := self._kept.at(text, place):
            return kept, kept
        source = self._longest.at(text, place) or text[place]
        return source, self._rules.get(source, source)


class Normalising:
    """The normalisation of a text that comes part by part."""

    def __init__(self, rules: Normaliser) -> None:
        """Begin a text."""
        self._rules = rules
        self._held, self._blanks, self._spaced = "", rules.prefix, rules.squeezed

    def push(self, text: str, final: bool) -> str:
        """Take more of the text, with ``final`` the last of it; return what nothing later can change."""
        rules, text = self._rules, self._held + text
        last = len(text) if final else max(0, len(text) - rules.reach)
        made, place = StringIO(), 0
        for new, _, end in rules.runs(text, last, self._spaced):
            made.write(new)
            self._spaced = rules.squeezed and new.endswith(" ") if new else self._spaced
            place = end
        self._held = text[place:]
        if not place:
            return ""
        normal = self._blanks + made.getvalue().replace(" ", SPACE)
        kept = normal.rstrip(SPACE) if rules.squeezed else normal
        self._blanks = normal[len(kept) :]
        return kept


def _stops(strings: Iterable[str]) -> re.Pattern[str]:
    """Return what is found at spaces behind a space, wherever a string begins, and at few other places.

    Single spaces are as they should be, unless a string begins with one. The pattern begins with one class of
    characters, for which the engine can look fast.
    """
    strings = list(strings)
    alone = {string for string in strings if len(string) == 1}
    longer = [string for string in strings if len(string) > 1]
    several = f"(?<={_any(string[0] for string in longer)})(?={_any(string[1] for string in longer)})"
    either = f"(?<=  )|(?<={_any(alone)})|{several}"
    return re.compile(f"{_any([' ', *(string[0] for string in strings)])}(?:{either})")


def _any(characters: Iterable[str]) -> str:
    """Return a class with the characters; all beyond U+FFFF for any of them, which are slow to tell apart."""
    codes = {min(ord(character), 0x10000) for character in characters}
    escaped = "".join(r"\U00010000-\U0010ffff" if code == 0x10000 else f"\\u{code:04x}" for code in sorted(codes))
    return f"[{escaped}]" if escaped else "(?!)"
