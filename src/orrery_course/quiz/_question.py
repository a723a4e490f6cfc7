"""What a question of the quiz is: what is asked, the right answer, wrong ones with what gives them, and why.

No answer is written by hand. A function computes it with the bricks of the program, together with what each wrong
answer would need to be true, so that another base or another matrix changes the key.
"""

import importlib
import pkgutil
import string
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

from orrery.errors import OrreryError, UsageError, did_you_mean, there_are
from orrery_course.quiz._typed import same, value_of

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
        if self.kind not in get_args(Kind):
            raise UsageError(f"{self.asks!r} is of kind {self.kind!r}", there_are("kinds", get_args(Kind)))
        if not _are(self.right, str) or not _are(self.wrong, Wrong):
            hint = 'write right=("3",) and wrong=(Wrong("4", "why not"),): texts in brackets, with a comma behind each'
            raise UsageError(f"right of {self.asks!r} are not texts, or wrong are not Wrong", hint)
        texts = (self.asks, self.why, self.try_this, *(text for one in self.wrong for text in (one.says, one.because)))
        if not _are(texts, str) or not all((self.asks, self.why, *self.right, *self.says)):
            hint = "write a text for what is asked, each answer, and why, and no number without quotes"
            raise UsageError(f"a part of {self.asks!r} is empty or no text", hint)
        self._check_answers()

    def _check_answers(self) -> None:
        """Refuse answers that cannot be told apart, or that nobody can give."""
        answers = [*((" ".join(self.right),) if self.typed else self.right), *self.says]
        parted = [answer.split() if self.typed else [answer] for answer in answers]
        alike = [first for first, second in combinations(parted, 2) if same(first, second) or same(second, first)]
        if not self.right or not self.wrong or alike:
            what = f"two answers of {self.asks!r} are the same, {' '.join(alike[0])!r}" if alike else (
                f"{self.asks!r} has no {'wrong' if self.right else 'right'} answer"
            )  # fmt: skip
            hint = "give a right answer, and at least one wrong answer that differs from it; numbers by over 1 percent"
            raise UsageError(what, hint)
        if self.kind == "one" and len(self.right) != 1:
            raise UsageError(f"{self.asks!r} has {len(self.right)} right options", 'ask it as kind "many"')
        if not self.typed and len(answers) > len(string.ascii_lowercase):
            raise UsageError(f"{self.asks!r} has {len(answers)} options", "give at most 26: each has a letter")
        unfit = [part for part in self.right if self.typed and (len(part.split()) != 1 or _no_number(self.kind, part))]
        if unfit:
            hint = 'give each number or word as a text of its own, as ("3", "5"); words are kind "words"'
            raise UsageError(f"nobody can type {unfit[0]!r} of {self.asks!r} as one of the {self.kind}", hint)

    @property
    def says(self) -> tuple[str, ...]:
        """The wrong answers."""
        return tuple(one.says for one in self.wrong)

    @property
    def typed(self) -> bool:
        """Whether numbers or words are typed, instead of options chosen."""
        return self.kind in ("numbers", "words")


def _are(parts: object, kind: type) -> bool:
    """Say whether this is a sequence of one kind, and not one text."""
    return isinstance(parts, Sequence) and not isinstance(parts, str) and all(isinstance(one, kind) for one in parts)


def _no_number(kind: Kind, part: str) -> bool:
    value = value_of(part)
    return kind == "numbers" and (value is None or value - value != 0)


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
        except Exception as error:
            said, hint = f"{type(error).__name__}: {error}", "mend its function"
            if isinstance(error, OrreryError):
                said, hint = error.message, error.hint
            place = f"{_place(self.compute, error)}: the question {self.name!r} cannot be computed"
            raise UsageError(f"{place}: {said}", hint) from error
        if not isinstance(found, Question):
            place = f"{_place(self.compute)}: the function of {self.name!r}"
            raise UsageError(f"{place} gives no question", "let it return a Question")
        return found


def _place(compute: Callable[[], Question], error: Exception | None = None) -> str:
    """Return the file and the line of a function, or where in its file an error came from."""
    code = compute.__code__
    steps = traceback.extract_tb(error.__traceback__) if error else []
    lines = [step.lineno for step in steps if step.filename == code.co_filename]
    return f"{code.co_filename}, line {[code.co_firstlineno, *lines][-1]}"


_ENTRIES: dict[str, Entry] = {}


def question(name: str, deck: str, slide: str) -> Callable[[Callable[[], Question]], Callable[[], Question]]:
    """Add the question that a function computes to the quiz; lecturers add their own by ``orrery with FILE quiz``.

    Raises:
        UsageError: the quiz has a question of this name.
    """

    def added(compute: Callable[[], Question]) -> Callable[[], Question]:
        if name in _ENTRIES or name.upper() in DECKS:
            other = _place(_ENTRIES[name].compute) if name in _ENTRIES else "a deck"
            raise UsageError(f"{_place(compute)}: {other} is called {name!r} too", "give the question another name")
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
        if name not in known and not any(name.upper() == one.deck.upper() for one in known.values()):
            close = did_you_mean(name, [*known, *DECKS])
            hint = f"{close}orrery quiz lists the questions; one of a file is there after orrery with FILE quiz"
            raise UsageError(f"the quiz has no question and no deck {name!r}", hint)
    wanted = {name.upper() for name in names}
    return [one for one in known.values() if not names or one.name in names or one.deck.upper() in wanted]


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
