"""Classification: one label for each row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._class_weights import ClassWeights, Kind
from orrery.objectives._on_head import OnHead, OnHeadSettings
from orrery.schema.numbers import Fraction

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "label"


@register
class Classification(OnHead):
    """``-w_y log p(y | x)`` in nats, summed over rows; ``p = softmax(head(x))``.

    The weights ``w`` are 1 or those of ``ClassWeights``. A batch has what the model reads, and ``labels`` [B].

    Differs from torch's cross entropy with weights, which divides by the weights of the batch and not by its rows: here
    the gradient of a batch is the same however it is split.
    """

    class Settings(OnHeadSettings):
        """``head`` is trained; ``class_weights``, balanced or sqrt, lets rare labels count as much or nearly so."""

        kind: Literal["classification"] = "classification"
        head: str = "sequence"
        label_smoothing: Fraction = 0.0
        class_weights: Kind | None = None

    needs = ("ids", "labels")

    def __init__(
        self,
        head: str = "sequence",
        label_smoothing: float = 0.0,
        class_weights: Kind | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(head, word_dropout)
        self.label_smoothing, self.weights = label_smoothing, ClassWeights(class_weights)

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return accuracy, which decides, and the loss."""
        return ({"kind": "accuracy", "head": settings.head, "field": "labels"}, {"kind": "loss"})

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        self.weights.counts = labels
        return NeededHead(self.head, "sequence", len(labels), tuple(labels), "single_label_classification")

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the weights of the labels in the order of the head.

        Raises:
            UsageError: the model lacks the head.
        """
        super().bind(spec, tokenizer)
        if self.weights.kind is not None:
            own: Any = spec
            self.weights.bind(own.heads[self.head].names)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the rows."""
        return {TERM: len(batch["labels"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the rows."""
        from orrery.nn.cross_entropy import summed_cross_entropy

        labels_B = batch["labels"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            logits_BN = head(x_BLD, real_BL)
            return summed_cross_entropy(logits_BN, labels_B, self.label_smoothing, self.weights.on(logits_BN.device))

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, len(labels_B))}

    def evaluated(self) -> "Classification":
        """Return the objective without label smoothing and weights."""
        return Classification(self.head)
