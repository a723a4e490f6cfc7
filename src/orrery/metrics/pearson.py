"""Pearson's correlation of predicted and right numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import check_head, field_of, said_by

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


@register
class Pearson(Metric):
    """The correlation of a head's one number with the right one, ``[B]`` (see `orrery.scores.regression`).

    Where one side is constant it is 0: a metric of a run is a number.
    """

    class Settings(MetricSettings):
        """``head`` gives the numbers, ``field`` of a batch is what is right."""

        kind: Literal["pearson"] = "pearson"
        head: str = "sequence"
        field: str = "labels"

    higher_is_better = True

    def __init__(self, head: str = "sequence", field: str = "labels") -> None:
        self.head, self.field = head, field

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without the head.

        Raises:
            UsageError: it has none of this name.
        """
        check_head("pearson", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sums of 1, x, y, xx, yy and xy."""
        import torch

        y = field_of("pearson", batch, self.field).double()
        x = said_by(model, batch, self.head).double().reshape(y.shape)
        return torch.stack([part.sum() for part in (torch.ones_like(x), x, y, x * x, y * y, x * y)])

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the correlation."""
        from orrery.scores.regression import pearson_of

        correlation = pearson_of(sums.numpy())
        return correlation if correlation == correlation else 0.0
