"""Format: the whole answer has the form of a regular expression."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from orrery.rewards import Reward, RewardSettings, register

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered

LONGEST = 10_000
"""Characters of an answer that are matched: some expressions take a time that grows with the power of the length."""


@register
class Format(Reward):
    """1 where a finished answer matches ``pattern`` from its beginning to its end, else 0; ``.`` is any character."""

    class Settings(RewardSettings):
        """``pattern`` is a regular expression of Python's module ``re``."""

        kind: Literal["format"] = "format"
        pattern: str

        @field_validator("pattern")
        @classmethod
        def _is_expression(cls, pattern: str) -> str:
            try:
                re.compile(pattern, re.DOTALL)
            except re.error as error:
                raise PydanticCustomError("pattern", "{fault}", {"fault": f"no regular expression: {error}"}) from None
            return pattern

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern, re.DOTALL)

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return 1 or 0 for each."""
        return [float(each.finished and self._matches(each.text)) for each in answers]

    def _matches(self, text: str) -> bool:
        return len(text) <= LONGEST and self.pattern.fullmatch(text) is not None
