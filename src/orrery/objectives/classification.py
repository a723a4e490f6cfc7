"""Classification: one label for each row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_labels import OnLabels, OnLabelsSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "label"


@register
class Classification(OnLabels):
    """``-w_y log p(y | x)`` in nats, summed over rows; ``p = softmax(head(x))``.

    The weights ``w`` are 1 or those of ``class_weights``. A batch has what the model reads, tokens or pictures, and
    ``labels`` [B].

    Differs from torch's cross entropy with weights, which divides by the weights of the batch and not by its rows: here
    the gradient of a batch is the same however it is split.
    """

    class Settings(OnLabelsSettings):
        """``head`` is trained."""

        kind: Literal["classification"] = "classification"
        head: str = "sequence"

    needs = ("labels",)

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return accuracy, which decides, and the loss."""
        return ({"kind": "accuracy", "head": settings.head, "field": "labels"}, {"kind": "loss"})

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        self.label_counts = labels
        return NeededHead(self.head, "sequence", len(labels), tuple(labels), "single_label_classification")

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the rows."""
        return {TERM: len(batch["labels"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the rows."""
        labels_B = batch["labels"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            return self.summed(head(x_BLD, real_BL), labels_B)

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, len(labels_B))}
