"""What the metrics that a loss tells by the way share: the mean of a term of the objective that has this name."""

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.metrics import Metric
from orrery.schema.registry import label_of

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.objectives import Term


class OfTerms(Metric, ABC):
    """A metric that a loss tells by the way.

    Attributes:
        terms: the names of the terms that it is made of.
    """

    terms: ClassVar[tuple[str, ...]]

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sum and the count of each of its terms, one after another.

        Raises:
            UsageError: the objective does not tell one of them.
        """
        import torch

        if missing := [name for name in self.terms if name not in terms]:
            message = f"{label_of(type(self))}: the objective tells {', '.join(terms)}, and no {missing[0]}"
            raise UsageError(message, "leave it out of evaluation.metrics, or learn with an objective that tells it")
        own_terms = [terms[name] for name in self.terms]
        return torch.tensor([number for term in own_terms for number in (float(term.sum), float(term.count))])


class OfOneTerm(OfTerms, ABC):
    """The mean of one term."""

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the mean; 0 where nothing was counted."""
        return means(sums)[0]


def means(sums: "Tensor") -> list[float]:
    """Return sum over count of each term."""
    return [total / max(1.0, count) for total, count in sums.unflatten(0, (-1, 2)).tolist()]
