"""Perplexity: how many equally likely tokens would be as hard to predict."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._nats import measured, nats

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.objectives import Term


@register
class Perplexity(Metric):
    """``exp(loss)``, of a loss that is nats a token."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["perplexity"] = "perplexity"

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sums and counts of the loss."""
        return measured(terms)

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the perplexity, at most ``exp(700)``."""
        return math.exp(min(nats(sums), 700))
