"""The loss itself, without what only training has."""

from typing import TYPE_CHECKING, Literal

from orrery.metrics import MetricSettings, register
from orrery.metrics._of_the_loss import OfTheLoss, nats

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack


@register
class Loss(OfTheLoss):
    """The terms of the objective, ``weight * sum / count`` over all batches; in nats where they are likelihoods."""

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["loss"] = "loss"

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the loss."""
        return nats(sums)
