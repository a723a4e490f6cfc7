"""Tagging: a label for each word, read at its first token."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_head import OnHead, OnHeadSettings
from orrery.schema.numbers import Fraction

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "tag"


@register
class Tagging(OnHead):
    """``-log p(y_t | x)`` in nats, summed over the tokens whose target is not -100.

    The source puts a word's label on the word's first token; its other tokens have none. A batch has what the model
    reads, and ``targets`` [B, L].
    """

    class Settings(OnHeadSettings):
        """``head`` is trained."""

        kind: Literal["tagging"] = "tagging"
        head: str = "token"
        label_smoothing: Fraction = 0.0

    needs = ("ids", "targets")

    def __init__(self, head: str = "token", label_smoothing: float = 0.0, word_dropout: float = 0.0) -> None:
        super().__init__(head, word_dropout)
        self.label_smoothing = label_smoothing

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return accuracy, which decides, and the loss."""
        return ({"kind": "accuracy", "head": settings.head}, {"kind": "loss"})

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        return NeededHead(self.head, "token", len(labels), tuple(labels))

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
            return summed_cross_entropy(logits_BLN.flatten(0, 1), targets_BL.flatten(), self.label_smoothing)

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}

    def evaluated(self) -> "Tagging":
        """Return the objective without label smoothing."""
        return Tagging(self.head)
