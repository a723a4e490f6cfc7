"""How far a model is from the one that it began as, on the tokens of the replies."""

from typing import Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_a_term import OfOneTerm


@register
class KLDivergence(OfOneTerm):
    """``mean 1/2 (log p(x_t) - log p_ref(x_t))^2`` in nats a token, over the data's tokens: k2 of Schulman 2020."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["kl"] = "kl"

    higher_is_better = False
    terms = ("kl",)
