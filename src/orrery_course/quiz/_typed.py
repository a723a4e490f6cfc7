"""Answers that are typed: which numbers and words a line holds, and when two answers are the same."""

import re
from collections.abc import Sequence

TOLERANCE = 0.01
"""How far a typed number may be from the right one, as a share of it, for people round; whole ones are counts."""
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))\.?\d*(?:[eE][-+]?\d+)?")
_ROOT = re.compile(r"(?:√|sqrt)\s*\(?(\d+(?:\.\d+)?)\)?")


def numbers_in(answer: str) -> list[str]:
    """Return the numbers of an answer; brackets, units and what else stands between them say nothing."""
    rooted = _ROOT.sub(lambda found: str(float(found[1]) ** 0.5), answer)
    return _NUMBER.findall(rooted.replace("\N{MINUS SIGN}", "-"))


def value_of(text: str) -> float | None:
    """Return the number that a text is, where it is one."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def same(given: Sequence[str], right: Sequence[str]) -> bool:
    """Say whether typed numbers or words are those of the answer; spelling of numbers and of case does not count."""
    return len(given) == len(right) and all(_alike(one, other) for one, other in zip(given, right, strict=True))


def _alike(given: str, right: str) -> bool:
    value, other = value_of(given), value_of(right)
    if value is None or other is None:
        return given.strip("'\"").lower() == right.strip("'\"").lower()
    return value == other if other.is_integer() else abs(value - other) <= TOLERANCE * abs(other)
