"""What an item of the course is: a thing that a slide asks for or shows, and what runs it.

A deck is a module, and an item is one of its functions, in the order of the slides: the docstring says what is seen,
and the body is the example, which the terminal, the page and the notebook run. An item that is a command is a call.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from orrery.errors import UsageError, did_you_mean, there_are

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

    def matches(self, text: str) -> bool:
        """Whether every word of a text stands in what is said of the item."""
        said = " ".join((self.name, self.slide, self.title, *self.codes)).lower()
        return all(word in said for word in text.lower().split())


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
        """Return the item of this name; else those in whose name, slide, title or codes all words of the text stand.

        Raises:
            UsageError: there is none.
        """
        named = [one for one in self.items if one.name == text.lower()]
        found = named or [one for one in self.items if one.matches(text)]
        if not found:
            names = [one.name for one in self.items]
            close = did_you_mean(text, names) or there_are("items", names)
            raise UsageError(f"{self.name} has no item {text!r}", close)
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
