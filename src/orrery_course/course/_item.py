"""What an item of the course is: a thing that a slide asks for or shows, and what runs it.

A deck is a module, and an item is one of its functions, in the order of the slides: the docstring says what is seen,
and the body is the example, which the terminal, the page and the notebook run. An item that is a command is a call.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from orrery.errors import UsageError, did_you_mean, there_are
from orrery_course.course._words import ALSO

MODULES = ("s0", "s1", "s2", "s3", "s4", "s4_recurrence", "s4_transformer")
"""The decks in their order; the last one is long, and has three files."""
Body = Callable[[], None]


@dataclass(frozen=True)
class Item:
    """A thing that a slide asks for or shows.

    Attributes:
        name: how the command line finds it; no other item of the deck has it.
        deck: S0 to S4.
        slide: the heading of the slide.
        codes: the rows of the course's inventory that it runs, such as W1.
        title: what it shows, in a few words.
        about: what to look at, one or two sentences.
        lines: command lines, one a row; or nothing, for Python.
        source: the example in Python; or nothing, for commands.
        given: the numbers that the slide has; each stands in what the item prints, but where the slide slips.
        slips: why a number of the slide is not the one that is printed, or nothing.
        more: a command that shows more, or nothing.
    """

    name: str
    deck: str
    slide: str
    codes: tuple[str, ...]
    title: str
    about: str
    lines: str = ""
    source: str = ""
    given: tuple[str, ...] = ()
    slips: str = ""
    more: str = ""

    @property
    def beside(self) -> str:
        """What the slide says of the numbers that are printed, in a sentence; or nothing."""
        if not self.given:
            return self.slips
        sentence = f"The slide has {', '.join(self.given)}."
        return f"{sentence} It slips: {self.slips}" if self.slips else sentence

    @property
    def words(self) -> str:
        """What the slide's subject is also called, with commas between; or nothing."""
        return ALSO.get(f"{self.deck} {self.name}", "")


@dataclass
class Deck:
    """A deck of slides, and its items in their order; ``change`` names one to change, ``to_see`` says how and why."""

    name: str
    title: str
    about: str
    change: str = ""
    to_see: str = ""
    items: list[Item] = field(default_factory=list)

    def code(
        self, name: str, codes: str, slide: str, given: tuple[str, ...] = (), slips: str = "", more: str = ""
    ) -> Callable[[Body], Body]:
        """Add the example that the body of a function is; its docstring is the title, and what to look at."""

        def added(body: Body) -> Body:
            title, _, about = inspect.cleandoc(body.__doc__ or "").partition("\n\n")
            source = body_of(body)
            said = (name, self.name, slide, tuple(codes.split()), title.rstrip("."), about)
            self._add(Item(*said, source=source, given=given, slips=slips, more=more))
            return body

        return added

    def command(
        self,
        name: str,
        codes: str,
        slide: str,
        title: str,
        about: str,
        lines: str,
        given: tuple[str, ...] = (),
        slips: str = "",
    ) -> None:
        """Add command lines."""
        said = (name, self.name, slide, tuple(codes.split()), title, inspect.cleandoc(about))
        self._add(Item(*said, lines=inspect.cleandoc(lines), given=given, slips=slips))

    def find(self, text: str) -> list[Item]:
        """Return the items of this deck that a text names, as `searched` does.

        Raises:
            UsageError: there is none.
        """
        found = searched(self.items, text)
        if not found:
            names = [one.name for one in self.items]
            elsewhere = ", ".join(f"{one.deck} {one.name}" for one in searched(every_item(), text))
            close = (
                f"other decks have: {elsewhere}"
                if elsewhere
                else did_you_mean(text, names) or there_are("items", names)
            )
            raise UsageError(f"{self.name} has no item {text[:80]!r}", close)
        return found

    def _add(self, item: Item) -> None:
        if any(item.name == other.name for other in self.items):
            raise UsageError(f"{self.name} has an item {item.name!r} already", "give the item another name")
        self.items.append(item)


def body_of(function: Body) -> str:
    """Return the lines behind a function's docstring, as they stand at the left edge."""
    text = textwrap.dedent(inspect.getsource(function))
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    lines = text.splitlines()[node.body[0].end_lineno :]
    return textwrap.dedent("\n".join(lines)).replace("  # fmt: skip", "").strip()


@cache
def decks() -> dict[str, Deck]:
    """Return the decks by their names; no example is run, and none of what they import is imported."""
    loaded = [importlib.import_module(f"orrery_course.course.{name}").DECK for name in MODULES]
    return {deck.name: deck for deck in loaded}


def every_item() -> list[Item]:
    """Return the items of all decks."""
    return [item for deck in decks().values() for item in deck.items]


def searchable() -> list[str]:
    """Return the names, the headings and what the subjects are also called, in small letters."""
    said = [part for one in every_item() for part in (one.name, *_parts(one.slide), *one.words.split(", "))]
    return [part.lower() for part in said if part]


def searched(items: Sequence[Item], text: str) -> list[Item]:
    """Return the item of a name or heading; else those in whose headings all words of a text begin a word.

    Where no heading has them, what is said of the items, and what their subjects are also called, is searched too.
    """
    asked, low = _words(text), text.lower().strip()
    heading = {one.name: f"{one.name} {one.slide} {one.title}" for one in items}
    named = [one for one in items if low == one.name]
    titled = [one for one in items if low in (one.slide.lower(), one.title.lower(), *_parts(one.slide.lower()))]
    said = [one for one in items if _holds(asked, heading[one.name], one.codes)]
    further = [one for one in items if _holds(asked, f"{heading[one.name]} {one.about} {one.words}", one.codes)]
    return named or titled or said or further


def _words(text: str) -> set[str]:
    """Return the words of a text in small letters; one with hyphens is there in one piece too."""
    low = text.lower()
    return {*re.findall(r"\w+", low), *(word.replace("-", "") for word in re.findall(r"\w+(?:-\w+)+", low))}


def _parts(slide: str) -> list[str]:
    return [part.strip() for part in slide.split(";")]


def _holds(asked: set[str], said: str, codes: Sequence[str]) -> bool:
    """Say whether each word that is asked for, without the s of a plural, begins a word that is said, or is a code."""
    words = _words(said)
    low = {code.lower() for code in codes}
    return bool(asked) and all(
        one in low or any(word.startswith(one if len(one) < 4 else one.removesuffix("s")) for word in words)
        for one in asked
    )


def find(name: str) -> Deck:
    """Return a deck.

    Raises:
        UsageError: there is none of this name.
    """
    known = decks()
    if name.upper() not in known:
        raise UsageError(
            f"the course has no deck {name!r}", did_you_mean(name, list(known)) or there_are("decks", list(known))
        )
    return known[name.upper()]
