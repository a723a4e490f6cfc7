"""The mean reward of what was chosen."""

from typing import Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfOneTerm


@register
class RewardChosen(OfOneTerm):
    """``mean r(y_w)``; of replies that stand alone, of those that are desirable (trl's rewards/chosen)."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["reward_chosen"] = "reward_chosen"

    higher_is_better = True
    terms = ("reward_chosen",)
