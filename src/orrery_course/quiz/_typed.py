"""Answers that are typed: which numbers and words a line holds, and when two answers are the same."""

import re
from collections.abc import Sequence

TOLERANCE = 0.01
"""How far a typed number may be from the right one, as a share of it, for people round; whole ones are counts."""
_NUMBER = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))\.?\d*(?:[eE][-+]?\d+)?")
_ROOT = re.compile(r"(?:√|\\?sqrt)\s*[({]?(\d+(?:\.\d+)?)[)}]?")
_POWER = re.compile(r"\s*[*·\N{MULTIPLICATION SIGN}x]\s*10(?:\^|\*\*)[({]?([-+]?\d+)[)}]?")
_PARTED = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?)|%)")
_COMMA = re.compile(r"\d,\d|\d\.\d{3}\.\d")
_TURNED = str.maketrans(",.", ".,")


def readings(answer: str, asks: str) -> list[list[str]]:
    """Return the numbers of an answer in each way in which it may be meant; what else stands between them says nothing.

    The ways: as it stands; with a comma before the decimals and points between thousands; with fractions, and with
    percent as a share, unless the question asks for percent.
    """
    rooted = _ROOT.sub(lambda found: str(float(found[1]) ** 0.5), answer.replace("\N{MINUS SIGN}", "-"))
    plain = _POWER.sub(r"e\1", rooted)
    ways = [plain, *([plain.translate(_TURNED)] if _COMMA.search(plain) else [])]
    if "/" in plain or "percent" not in asks:
        ways += [_PARTED.sub(_parted, way) for way in ways]
    return [_NUMBER.findall(way) for way in ways]


def _parted(found: re.Match[str]) -> str:
    """Return what a fraction or a percentage is; one over 0 stays as it stands."""
    below = float(found[2] or 100)
    return repr(float(found[1]) / below) if below else found[0]


def value_of(text: str) -> float | None:
    """Return the number that a text is, where it is one."""
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def same(given: Sequence[str], right: Sequence[str], factor: float = 1) -> bool:
    """Say whether typed numbers or words are those of the answer; spelling of numbers and of case does not count."""
    return len(given) == len(right) and all(_alike(one, other, factor) for one, other in zip(given, right, strict=True))


def ordered(parts: Sequence[str]) -> list[str]:
    """Return numbers or words in the order of their size or of their letters."""
    return sorted(parts, key=lambda part: (value_of(part) or 0, part.lower()))


def _alike(given: str, right: str, factor: float) -> bool:
    value, other = value_of(given), value_of(right)
    if value is None or other is None:
        return given.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").strip("'\"").lower() == right.strip("'\"").lower()
    value *= factor
    return value == other if other.is_integer() else abs(value - other) <= TOLERANCE * abs(other)
