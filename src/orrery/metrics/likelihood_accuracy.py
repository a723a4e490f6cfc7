"""How often the chosen reply of a pair is the likelier one."""

from typing import Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfOneTerm


@register
class LikelihoodAccuracy(OfOneTerm):
    """``mean [log p(y_w | x) > log p(y_l | x)]`` over pairs, without a reference model."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["likelihood_accuracy"] = "likelihood_accuracy"

    higher_is_better = True
    terms = ("likelier",)
