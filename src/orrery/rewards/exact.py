"""Exact match: the answer is the one that the prompt's row gives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from orrery.rewards import Reward, RewardSettings, register
from orrery.rewards._reward import ANSWERS

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered


@register
class Exact(Reward):
    """1 where answer and right answer are the same but for the white space around them, else 0."""

    class Settings(RewardSettings):
        """``column`` has the right answer; by default the first of the known names."""

        kind: Literal["exact"] = "exact"
        column: str | None = None

    def __init__(self, column: str | None = None) -> None:
        self.column = column

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return 1 or 0 for each."""
        return [float(each.text.strip() == each.column(self.column, ANSWERS).strip()) for each in answers]
