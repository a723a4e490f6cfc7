"""Arithmetic: the number that an answer ends with is the right one."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from orrery.data.files import bad_record
from orrery.errors import DataError
from orrery.rewards import Reward, RewardSettings, register
from orrery.rewards._reward import ANSWERS

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered

_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<whole>\d*)\\[dt]?frac(?:\{(?P<over>-?\d+)\}\{(?P<under>\d+)\}|(?P<upper>\d)(?P<lower>\d))"
    r"|-?\d[\d,]*(?:\.\d+)?(?:/\d+)?|-?\.\d+",
    re.ASCII,
)
_WITHIN = re.compile(r"(?:/|\^\{?|\\[dt]?frac\{[^{}]*\}\{|\\sqrt\{)\s*$")
"""What stands before a number that is a part of another: a date, a power, what is under a root or an unknown."""
_BOXED = "\\boxed{"


@register
class Arithmetic(Reward):
    r"""1 where the last number of a finished answer equals the last one of the right answer, else 0.

    ``1,000``, ``1000`` and ``1000.0`` are equal, and so are ``3/4``, ``\frac{3}{4}`` and ``0.75``. GSM8K's right
    answers end with ``#### 42``, so the last number is theirs too (Cobbe et al. 2021); of a text with ``\boxed{}``, as
    MATH has it (Hendrycks et al. 2021), what stands in the last one alone is read. An answer without its end token is
    worth 0: its number may go on. A right answer that ends in a part of a number, as x^2 does, is refused.
    """

    class Settings(RewardSettings):
        """``column`` has the right answer; by default the first of the known names."""

        kind: Literal["arithmetic"] = "arithmetic"
        column: str | None = None

    def __init__(self, column: str | None = None) -> None:
        self.column = column

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return 1 or 0 for each."""
        return [self._score(each) for each in answers]

    def _score(self, answered: "Answered") -> float:
        right, where = answered.column(self.column, ANSWERS), answered.prompt.where
        wanted = last_number(right)
        if wanted is None:
            raise bad_record(where, "the right answer holds no number")
        read = boxed(right)
        *_, last = _NUMBER.finditer(read)
        if _WITHIN.search(read[: last.start()]):
            message = f"{where}: the right answer ends in {right[-40:]!r}, of which {last[0]} is a part alone"
            raise DataError(message, "write it as one number in decimals, or judge by the reward exact")
        number = last_number(answered.text) if answered.finished else None
        return float(number is not None and number == wanted)


def boxed(text: str) -> str:
    r"""Return what stands in the last \boxed{} of a text, or the text where it has none that is closed."""
    before, mark, inside = text.rpartition(_BOXED)
    depth = 1
    for place, character in enumerate(inside if mark else ""):
        depth += (character == "{") - (character == "}")
        if not depth:
            return inside[:place]
    return boxed(before) if mark else text


def last_number(text: str) -> Fraction | None:
    """Return the last number of a text, or of its last box; nothing where it has none."""
    *_, found = (None, *_NUMBER.finditer(boxed(text)))
    if found is None:
        return None
    try:
        if found["over"] is None and found["upper"] is None:
            over, _, under = found[0].replace(",", "").partition("/")
            return Fraction(over) / Fraction(under or "1")
        part = Fraction(int(found["over"] or found["upper"]), int(found["under"] or found["lower"]))
        value = part + int(found["whole"] or "0")
        return -value if found["sign"] else value
    except (ValueError, ZeroDivisionError):  # more digits than a number can have
        return None
