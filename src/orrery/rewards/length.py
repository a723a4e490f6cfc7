"""Length: how near an answer comes to a number of tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from orrery.rewards import Reward, RewardSettings, register
from orrery.schema.numbers import Count, Positive

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered


@register
class Length(Reward):
    """``-max(0, |n - tokens| - slack) / tokens`` of an answer of ``n`` tokens: 0 within ``slack`` of the goal."""

    class Settings(RewardSettings):
        """``tokens`` is the goal, the end token counted; ``slack`` tokens more or less cost nothing."""

        kind: Literal["length"] = "length"
        tokens: Positive
        slack: Count = 0

    def __init__(self, tokens: int, slack: int = 0) -> None:
        self.tokens, self.slack = tokens, slack

    def score(self, answers: "Sequence[Answered]") -> list[float]:
        """Return a number of at most 0 for each."""
        return [-max(0, abs(each.tokens - self.tokens) - self.slack) / self.tokens for each in answers]
