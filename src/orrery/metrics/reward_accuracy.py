"""How often the chosen side of a pair has the larger reward."""

from typing import Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfOneTerm


@register
class RewardAccuracy(OfOneTerm):
    """``mean [r(y_w) > r(y_l)]`` over pairs, a tie being wrong (trl's rewards/accuracies)."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["reward_accuracy"] = "reward_accuracy"

    higher_is_better = True
    terms = ("reward_accuracy",)
