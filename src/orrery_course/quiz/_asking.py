"""Asking in words: options with letters, and what an answer was worth."""

import hashlib
import string
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.errors import UsageError
from orrery_course.quiz._question import Question
from orrery_course.quiz._typed import ordered, readings, same


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
        UsageError: a letter that no option has, or no number where numbers are asked.
    """
    if question.kind == "numbers":
        return _typed(question, answer, readings(answer, question.asks))
    given = answer.replace(",", " ").split()
    if question.kind == "words":
        return _typed(question, answer, [given])
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


def _typed(question: Question, answer: str, ways: Sequence[Sequence[str]]) -> Judgement:
    """Judge what was typed by the way to read it that is best for who typed it."""
    if not ways[0]:
        raise UsageError(f"{answer.strip()!r} is no answer", "type numbers in digits, such as 0.5, 1/2 or 2e-7")
    if any(same(given, question.right) for given in ways):
        return Judgement(True, "")
    for one in question.wrong:
        if any(same(given, one.says.split()) for given in ways):
            return Judgement(False, one.because)
    return Judgement(False, _near(question, ways))


def _near(question: Question, ways: Sequence[Sequence[str]]) -> str:
    """Return what an answer that is wrong has in common with the right one, or how many it takes; else nothing."""
    right, numbers = question.right, question.kind == "numbers"
    if any(same(ordered(given), ordered(right)) for given in ways):
        return "right, but in another order"
    if numbers and any(same(given, right, factor) for given in ways for factor in (100, 0.01)):
        return "right but for a factor of 100: mind whether a share or percent is asked"
    if any(len(given) == len(right) for given in ways):
        return ""
    what = question.kind if len(right) > 1 else question.kind.removesuffix("s")
    return f"it takes {len(right)} {what}, and there {'is' if len(ways[0]) == 1 else 'are'} {len(ways[0])}"
