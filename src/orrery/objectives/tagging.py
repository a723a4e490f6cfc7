"""Tagging: a label for each word, read at its first token."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_labels import OnLabels, OnLabelsSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "tag"


@register
class Tagging(OnLabels):
    """``-w_y log p(y_t | x)`` in nats, summed over the tokens whose target is not -100.

    The weights ``w`` are 1 or those of ``class_weights``: of the words of a text few are names. The source puts a
    word's label on the word's first token; its other tokens have none. A batch has what the model reads, and
    ``targets`` [B, L].
    """

    class Settings(OnLabelsSettings):
        """``head`` is trained."""

        kind: Literal["tagging"] = "tagging"
        head: str = "token"

    needs = ("ids", "targets")

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return accuracy, which decides, and the loss."""
        return ({"kind": "accuracy", "head": settings.head}, {"kind": "loss"})

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        self.label_counts = labels
        return NeededHead(self.head, "token", len(labels), tuple(labels))

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the words."""
        from orrery.nn.cross_entropy import IGNORED

        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the words."""
        from orrery.nn.cross_entropy import IGNORED

        targets_BL = batch["targets"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            return self.summed(head(x_BLD, real_BL).flatten(0, 1), targets_BL.flatten())

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}
