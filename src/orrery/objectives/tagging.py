"""Tagging: a label for each word, read at its first token."""

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

TERM = "tag"


@register
class Tagging(OnHead):
    """``-w_y log p(y_t | x)`` in nats, summed over the tokens whose target is not -100.

    The weights ``w`` are 1 or those of ``ClassWeights``: of the words of a text few are names. The source puts a word's
    label on the word's first token; its other tokens have none. A batch has what the model reads, and ``targets``
    [B, L].
    """

    class Settings(OnHeadSettings):
        """``head`` is trained; ``class_weights``, balanced or sqrt, lets rare labels count as much or nearly so."""

        kind: Literal["tagging"] = "tagging"
        head: str = "token"
        label_smoothing: Fraction = 0.0
        class_weights: Kind | None = None

    needs = ("ids", "targets")

    def __init__(
        self,
        head: str = "token",
        label_smoothing: float = 0.0,
        class_weights: Kind | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(head, word_dropout)
        self.label_smoothing, self.weights = label_smoothing, ClassWeights(class_weights)

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return accuracy, which decides, and the loss."""
        return ({"kind": "accuracy", "head": settings.head}, {"kind": "loss"})

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        self.weights.counts = labels
        return NeededHead(self.head, "token", len(labels), tuple(labels))

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
        """Count the words."""
        from orrery.nn.cross_entropy import IGNORED

        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the words."""
        from orrery.nn.cross_entropy import IGNORED, summed_cross_entropy

        targets_BL = batch["targets"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            logits_BLN = head(x_BLD, real_BL)
            weights_N = self.weights.on(logits_BLN.device)
            return summed_cross_entropy(logits_BLN.flatten(0, 1), targets_BL.flatten(), self.label_smoothing, weights_N)

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}

    def evaluated(self) -> "Tagging":
        """Return the objective without label smoothing and weights."""
        return Tagging(self.head)
