"""Perplexity: how many equally likely tokens would be as hard to predict."""

import math
from typing import TYPE_CHECKING, Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_the_loss import OfTheLoss, nats

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack


@register
class Perplexity(OfTheLoss):
    """``exp(loss)``, of a loss that is nats a token."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["perplexity"] = "perplexity"

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the perplexity, at most ``exp(700)``."""
        return math.exp(min(nats(sums), 700))
