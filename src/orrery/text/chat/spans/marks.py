"""Marks around what messages say, inside the white space that templates strip: where it stands in a rendered text."""

import re
import secrets
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orrery.text.chat.messages import REASONING

Path = tuple[str, ...]
Keep = Callable[[Path], bool]
"""Whether the text at a path of field names stays unmarked; the last name of the path of a key is the empty one."""

_IDENTIFIERS = ("id", "tool_call_id")
_LONG_ENOUGH = 6
"""Characters of an id from which on a random one of its length stands nowhere else."""


@dataclass(frozen=True)
class Mark:
    """One end of something that a message says, at a place of the text without marks."""

    place: int
    message: int
    opens: bool


@dataclass(frozen=True)
class Anchor:
    """The end of a message's words that stand before another's: the ``count``-th end of this message, -1 for none."""

    place: int
    message: int
    count: int


@dataclass(frozen=True)
class Seen:
    """A rendered text without its marks, and the marks in order."""

    text: str
    marks: list[Mark]

    def first(self, message: int) -> int | None:
        """Return where a message's words begin; None where nothing of it stands in the text."""
        return next((mark.place for mark in self.marks if mark.message == message and mark.opens), None)

    def last(self, message: int) -> int | None:
        """Return where a message's words end; None where nothing of it stands in the text."""
        ends = [mark.place for mark in self.marks if mark.message == message and not mark.opens]
        return ends[-1] if ends else None

    def rest(self, message: int) -> str | None:
        """Return the text after a message's words; None where nothing of it stands in the text."""
        last = self.last(message)
        return None if last is None else self.text[last:]

    def holds_others(self, message: int, first: int, last: int) -> bool:
        """Say whether words of another message stand between two places."""
        return any(first < mark.place < last and mark.message != message for mark in self.marks)

    def anchor(self, place: int | None = None, message: int = -1) -> Anchor:
        """Return the last end of words before a place (the end of the text) which are not those of a message."""
        ends = [mark for mark in self.marks if not mark.opens and mark.message != message]
        ends = ends if place is None else [mark for mark in ends if mark.place <= place]
        if not ends:
            return Anchor(0, -1, 0)
        return Anchor(ends[-1].place, ends[-1].message, sum(mark.message == ends[-1].message for mark in ends))

    def count(self, message: int) -> int:
        """Return how many stretches of a message's words stand in the text."""
        return sum(mark.opens and mark.message == message for mark in self.marks)

    def find(self, anchor: Anchor) -> int | None:
        """Return where an anchor of another rendering stands; None where this one lacks it."""
        if anchor.message < 0:
            return 0
        ends = [mark.place for mark in self.marks if not mark.opens and mark.message == anchor.message]
        return ends[anchor.count - 1] if len(ends) >= anchor.count else None

    def after(self, anchor: Anchor) -> str | None:
        """Return the text after an anchor of another rendering; None where this one lacks it."""
        place = self.find(anchor)
        return None if place is None else self.text[place:]

    def following(self, place: int) -> int:
        """Return where the next words begin, of whichever message; else the end of the text."""
        return next((mark.place for mark in self.marks if mark.opens and mark.place >= place), len(self.text))


class Marking:
    """Random marks, one pair for each message; digits, which no filter of a template changes."""

    def __init__(self) -> None:
        self._bits = f"{secrets.randbits(128):039d}"
        self._others: dict[str, str] = {}
        """By the id of a call: what stands for it where it is not marked."""

    def mark(self, messages: Sequence[Mapping[str, Any]], keep: Keep) -> list[dict[str, Any]]:
        """Return the messages with marks around each text, and around the names of a tool's arguments."""
        return [
            {name: self._put(inner, self._index(messages, place), (name,), keep) for name, inner in message.items()}
            for place, message in enumerate(messages)
        ]

    def see(self, text: str) -> Seen:
        """Return a rendered text without its marks, and where they stood."""
        for identifier, other in self._others.items():
            text = text.replace(other, self.around(identifier, 0))
        pieces = self._pattern.split(text)
        marks, place = [], 0
        for piece, index, end in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=False):
            place += len(piece)
            marks.append(Mark(place, int(index), end == "1"))
        return Seen("".join(pieces[::3]), marks)

    @staticmethod
    def _index(messages: Sequence[Mapping[str, Any]], place: int) -> int:
        # Equal questions stay equal: templates look for the last one by comparing them.
        message = messages[place]
        return place if message["role"] == "assistant" else messages.index(message)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._bits + r"(\d{5})([12])")

    def _put(self, value: Any, message: int, path: Path, keep: Keep) -> Any:
        if isinstance(value, str):
            if not keep(path):
                return self.around(value, message)
            is_identifier = keep is identifiers and not branched(path) and len(value) >= _LONG_ENOUGH
            return self._others.setdefault(value, _another(value)) if is_identifier else value
        if isinstance(value, Mapping):
            named = path[-1] == "properties" or "arguments" in path
            return {
                self.around(name, message) if named and not keep((*path, "")) else name:
                self._put(inner, message, (*path, name), keep)
                for name, inner in value.items()
            }  # fmt: skip
        if isinstance(value, list | tuple):
            return [self._put(inner, message, path, keep) for inner in value]
        return value

    def around(self, text: str, message: int) -> str:
        """Return a text with the marks of a message around it."""
        core = text.strip()
        marked = f"{self._bits}{message:05d}1{core}{self._bits}{message:05d}2"
        return text.replace(core, marked, 1) if core else text


def _another(identifier: str) -> str:
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in identifier)


def branched(path: Path) -> bool:
    """Keep roles and types, on which templates branch."""
    return path[-1] in ("role", "type") and "arguments" not in path


def identifiers(path: Path) -> bool:
    """Keep also the length of the ids of calls, which templates check."""
    return branched(path) or (path[-1] in _IDENTIFIERS and "arguments" not in path)


def answers(path: Path) -> bool:
    """Keep all but contents, reasoning and arguments: templates look names up and write them in other messages."""
    return branched(path) or not {"content", *REASONING, "arguments"} & {*path}


def named(path: Path) -> bool:
    """Keep as `answers` does, but mark the names of functions, too."""
    return answers(path) and path[-2:] != ("function", "name")


def contents(path: Path) -> bool:
    """Keep all but contents and reasoning."""
    return answers(path) or "arguments" in path
