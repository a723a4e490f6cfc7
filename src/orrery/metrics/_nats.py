"""The loss as sums and counts, which the metrics that follow from it share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.objectives import Term


def measured(terms: "Mapping[str, Term]") -> "Tensor":
    """Return the weighted sum and the count of each term, one after another."""
    import torch

    numbers = [float(number) for term in terms.values() for number in (term.weight * float(term.sum), term.count)]
    return torch.tensor(numbers, dtype=torch.float64)


def nats(sums: "Tensor") -> float:
    """Return the loss: the sum of each term over its count; one that counts nothing is 0."""
    table = sums.unflatten(0, (-1, 2))
    return float((table[:, 0] / table[:, 1].clamp(min=1)).sum())
