"""The mean reward of what was rejected."""

from typing import Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfOneTerm


@register
class RewardRejected(OfOneTerm):
    """``mean r(y_l)``; of replies that stand alone, of those that are not desirable (trl's rewards/rejected)."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["reward_rejected"] = "reward_rejected"

    higher_is_better = False
    terms = ("reward_rejected",)
