"""What a question of the quiz is: what is asked, the right answer, wrong ones with what gives them, and why.

No answer is written by hand. A function computes it with the bricks of the program, together with what each wrong
answer would need to be true, so that another base or another matrix changes the key.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from orrery.errors import UsageError, did_you_mean, there_are

DECKS = {
    "S0": "UMass COMPSCI 589, lecture 9",
    "S1": "UMass CS 685",
    "S2": "COMP 4630",
    "S3": "ShanghaiTech CS182",
    "S4": "CUHK IERG5050",
}
"""The decks, and whose they are."""

Kind = Literal["one", "many", "numbers", "words"]
"""One option holds, several do, or numbers or words are typed."""


@dataclass(frozen=True)
class Wrong:
    """A wrong answer, and the computation or the belief that gives it."""

    says: str
    because: str


@dataclass(frozen=True)
class Question:
    """A question with its computed answers.

    Attributes:
        asks: the question.
        kind: how it is answered.
        right: the right option, all that hold, or the numbers or words in their order.
        wrong: the options that do not hold; of a typed answer what others say.
        why: why it is so, with the numbers that show it.
        try_this: a command that shows more, or nothing.
    """

    asks: str
    kind: Kind
    right: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    why: str
    try_this: str = ""

    def __post_init__(self) -> None:
        """Refuse a question that nobody can answer."""
        right = (" ".join(self.right),) if self.typed else self.right
        answers = [*right, *(one.says for one in self.wrong)]
        if not self.right or not self.wrong or len(set(answers)) != len(answers):
            raise UsageError(
                f"the answers of {self.asks!r} are not all different, or one kind of them is missing",
                "give a question a right answer, and at least one wrong answer that differs from it",
            )
        if self.kind == "one" and len(self.right) != 1:
            raise UsageError(f"{self.asks!r} has {len(self.right)} right options", 'ask it as kind "many"')

    @property
    def typed(self) -> bool:
        """Whether numbers or words are typed, instead of options chosen."""
        return self.kind in ("numbers", "words")


@dataclass(frozen=True)
class Entry:
    """A question in its place: its name, the deck and the slide that ask it, and the function that computes it."""

    name: str
    deck: str
    slide: str
    compute: Callable[[], Question]

    @cached_property
    def question(self) -> Question:
        """The question; computed once.

        Raises:
            UsageError: the function of a lecturer's own fails, or gives something else.
        """
        try:
            found = self.compute()
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise UsageError(
                f"the question {self.name!r} cannot be computed: {error!r}", "mend its function"
            ) from error
        if not isinstance(found, Question):
            raise UsageError(f"the function of {self.name!r} gives no question", "let it return a Question")
        return found


_ENTRIES: dict[str, Entry] = {}


def question(name: str, deck: str, slide: str) -> Callable[[Callable[[], Question]], Callable[[], Question]]:
    """Add the question that a function computes to the quiz; lecturers add their own by ``orrery with FILE quiz``.

    Raises:
        UsageError: the quiz has a question of this name.
    """

    def added(compute: Callable[[], Question]) -> Callable[[], Question]:
        if name in _ENTRIES or name in DECKS:
            raise UsageError(f"the quiz has {name!r} already", "give the question another name")
        _ENTRIES[name] = Entry(name, deck, slide, compute)
        return compute

    return added


def entries() -> dict[str, Entry]:
    """Return all questions by their names, deck by deck; none is computed."""
    for module in pkgutil.iter_modules(importlib.import_module("orrery_course.quiz").__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"orrery_course.quiz.{module.name}")
    return dict(sorted(_ENTRIES.items(), key=lambda each: each[1].deck))


def chosen(names: Sequence[str]) -> list[Entry]:
    """Return the questions of some names or decks; without any, all.

    Raises:
        UsageError: no question and no deck has such a name.
    """
    known = entries()
    for name in names:
        if name not in known and not any(name.upper() == one.deck for one in known.values()):
            close = did_you_mean(name, [*known, *DECKS])
            raise UsageError(f"the quiz has no question and no deck {name!r}", close or there_are("decks", list(DECKS)))
    wanted = {name.upper() for name in names}
    return [one for one in known.values() if not names or one.name in names or one.deck in wanted]


def number(value: float, digits: int = 4) -> str:
    """Return a number as it is shown and typed: whole ones whole, others to some significant digits."""
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"


def numbers(values: Sequence[float], digits: int = 4) -> tuple[str, ...]:
    """Return several of them."""
    return tuple(number(value, digits) for value in values)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, as an answer."""
    return tuple(text.split())


def holds(claims: Sequence[tuple[str, bool, str]]) -> tuple[tuple[str, ...], tuple[Wrong, ...]]:
    """Part claims into those that were computed to hold, and the others with why not."""
    right = tuple(claim for claim, is_so, _ in claims if is_so)
    return right, tuple(Wrong(claim, because) for claim, is_so, because in claims if not is_so)
