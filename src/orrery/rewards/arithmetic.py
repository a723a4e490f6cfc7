"""Arithmetic: the number that an answer ends with is the right one."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from orrery.data.files import bad_record
from orrery.errors import DataError
from orrery.rewards import Reward, RewardSettings, register
from orrery.rewards._reward import ANSWERS

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+", re.ASCII)

_WITHIN = re.compile(r"(?:/|\^\{?|\\[dt]?frac\{[^{}]*\}\{|\\sqrt\{)\s*$")
"""What stands before a number that is a part of another: a fraction's lower half, a power, what is under a root."""


@register
class Arithmetic(Reward):
    """1 where the last number of a finished answer equals the last one of the right answer, else 0.

    ``1,000``, ``1000`` and ``1000.0`` are equal. GSM8K's right answers end with ``#### 42``, so the last number is
    theirs too (Cobbe et al. 2021). An answer without its end token is worth 0: its number may go on. A right answer
    that ends in a part of a number, as 3/4 does, is refused.
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
        *_, last = _NUMBER.finditer(right)
        if _WITHIN.search(right[: last.start()]):
            message = f"{where}: the right answer ends in {right[-40:]!r}, of which {last[0]} is a part alone"
            raise DataError(message, "write it as one number in decimals, or judge by the reward exact")
        number = last_number(answered.text) if answered.finished else None
        return float(number is not None and number == wanted)


def last_number(text: str) -> Decimal | None:
    """Return the last number of a text, or nothing where it has none."""
    numbers = _NUMBER.findall(text)
    try:
        return Decimal(numbers[-1].replace(",", "")) if numbers else None
    except InvalidOperation:  # more digits than a decimal number can have
        return None
