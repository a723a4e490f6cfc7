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
from itertools import pairwise

from orrery.errors import UsageError, did_you_mean, there_are
from orrery_course.course._words import ALSO

MODULES = ("s0", "s1", "s2", "s3", "s4", "s4_recurrence", "s4_transformer")
"""The decks in their order; the last one is long, and has three files."""
FILLERS = {
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "how", "in", "is", "of",
    "or", "the", "to", "what", "when", "where", "which", "why",
}  # fmt: skip
"""Words of a question that say nothing of its subject."""
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
    """Return the names, the headings, what the subjects are also called, and each word of them, in small letters."""
    said = [part for one in every_item() for part in (one.name, *_parts(one.slide), *one.words.split(", "))]
    return [*dict.fromkeys(part.lower() for whole in said for part in (whole, *whole.split()) if part)]


def searched(items: Sequence[Item], text: str) -> list[Item]:
    """Return the item of a name or heading; else those in whose headings all words of a text begin a word.

    With these come those whose subject is called so. Where no heading has the words, what is said of the items, what
    their subjects are also called, their codes, and at last what they run is searched.
    """
    asked, low = _asked(text), text.lower().strip()
    heading = {one: f"{one.name} {one.slide} {one.title}" for one in items}
    about = {one: f"{heading[one]} {one.about} {one.words}" for one in items}
    run = {one: f"{about[one]} {' '.join(one.given)} {one.slips} {one.source} {one.lines}" for one in items}
    named = [one for one in items if low == one.name]
    titled = [one for one in items if low in (one.slide.lower(), one.title.lower(), *_parts(one.slide.lower()))]
    headed = {one for one in items if _holds(asked, heading[one])}
    called = [one for one in items if headed and (one in headed or low in one.words.lower().split(", "))]
    coded = [one for one in items if text.upper() in one.codes]
    found = ([one for one in items if _holds(asked, said[one])] for said in (about, run))
    return named or titled or called or next(found) or coded or next(found)


def _asked(text: str) -> list[str]:
    """Return what is looked for: the words in small letters, without those of a question where others are left."""
    asked = re.findall(r"\w+(?:-\w+)*", text.lower())
    return [word for word in asked if word not in FILLERS] or asked


def _words(text: str) -> set[str]:
    """Return the words of a text in small letters; those with hyphens are there in one piece too."""
    low = text.lower()
    return {*re.findall(r"\w+", low), *(word.replace("-", "") for word in re.findall(r"\w+(?:-\w+)+", low))}


def _parts(slide: str) -> list[str]:
    return [part.strip() for part in slide.split(";")]


def _holds(asked: Sequence[str], said: str) -> bool:
    """Say whether each word that is asked for, without the s of a plural, begins a said word, or is two in one piece.

    One with a hyphen is looked for in one piece, and in its parts.
    """
    words = _words(said)
    pairs = {first + second for first, second in pairwise(re.findall(r"\w{2,}", said.lower()))}

    def begins(word: str) -> bool:
        stem = word if len(word) < 4 else word.removesuffix("s")
        return word in pairs or any(one.startswith(stem) for one in words)

    return bool(asked) and all(begins(word.replace("-", "")) or all(map(begins, word.split("-"))) for word in asked)


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
