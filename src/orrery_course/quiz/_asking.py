"""Asking in words: options with letters, and what an answer was worth."""

import hashlib
import string
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.errors import UsageError
from orrery_course.quiz._question import Question
from orrery_course.quiz._typed import numbers_in, same


@dataclass(frozen=True)
class Judgement:
    """Whether an answer is right, and what is said of it."""

    right: bool
    said: str


def lettered(question: Question) -> dict[str, str]:
    """Return the options by their letters, in an order that says nothing and is always the same; none if one types."""
    if question.typed:
        return {}
    options = [*question.right, *(one.says for one in question.wrong)]
    options.sort(key=lambda option: hashlib.sha256(f"{question.asks}{option}".encode()).digest())
    return dict(zip(string.ascii_lowercase, options, strict=False))


def judge(question: Question, answer: str) -> Judgement:
    """Say whether an answer is right: letters of options, or numbers or words one after the other.

    Raises:
        UsageError: a letter that no option has.
    """
    given = numbers_in(answer) if question.kind == "numbers" else answer.replace(",", " ").split()
    if question.typed:
        return _typed(question, given)
    options = lettered(question)
    letters = [letter for part in given for letter in part.lower()]
    if not letters or not all(letter in options for letter in letters):
        raise UsageError(f"{answer.strip()!r} is no answer", f"type letters: {', '.join(options)}")
    said = {options[letter] for letter in letters}
    because = {one.says: one.because for one in question.wrong}
    remarks = [f"{options[letter]}: no. {because[options[letter]]}" for letter in options if options[letter] in because
               and options[letter] in said]  # fmt: skip
    missing = [option for option in question.right if option not in said]
    if missing and question.kind == "many":
        remarks += [f"{option}: this holds too." for option in missing]
    return Judgement(not missing and not remarks, "\n".join(remarks))


def shown(question: Question) -> str:
    """Return the right answer as one reads it."""
    return "; ".join(question.right) if question.kind == "many" else " ".join(question.right)


def _typed(question: Question, given: Sequence[str]) -> Judgement:
    if same(given, question.right):
        return Judgement(True, "")
    for one in question.wrong:
        if same(given, one.says.split()):
            return Judgement(False, one.because)
    if len(given) != len(question.right):
        return Judgement(False, f"it takes {len(question.right)}, and these are {len(given)}")
    return Judgement(False, "")
