"""How much larger the mean reward of what was chosen is."""

from typing import TYPE_CHECKING, Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfTerms, means

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack


@register
class RewardMargin(OfTerms):
    """``mean r(y_w) - mean r(y_l)`` (trl's rewards/margins)."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["reward_margin"] = "reward_margin"

    higher_is_better = True
    terms = ("reward_chosen", "reward_rejected")

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the difference."""
        chosen, rejected = means(sums)
        return chosen - rejected
