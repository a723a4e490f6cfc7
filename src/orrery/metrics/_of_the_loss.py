"""What the metrics that follow from the loss share: its sums and counts."""

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orrery.metrics import Metric

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.objectives import Term


class OfTheLoss(Metric, ABC):
    """A metric that is a function of the loss."""

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the weighted sum and the count of each term, one after another."""
        import torch

        numbers = [float(number) for term in terms.values() for number in (term.weight * float(term.sum), term.count)]
        return torch.tensor(numbers, dtype=torch.float64)


def nats(sums: "Tensor") -> float:
    """Return the loss: the sum of each term over its count; one that counts nothing is 0."""
    table = sums.unflatten(0, (-1, 2))
    return float((table[:, 0] / table[:, 1].clamp(min=1)).sum())
