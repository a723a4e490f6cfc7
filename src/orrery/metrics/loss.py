"""The loss itself, without what only training has."""

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
class Loss(Metric):
    """The terms of the objective, ``weight * sum / count`` over all batches; in nats where they are likelihoods."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["loss"] = "loss"

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sums and counts of the loss."""
        return measured(terms)

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the loss."""
        return nats(sums)
