"""Classification with any number of labels a row: one question of yes or no for each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_head import OnHead, OnHeadSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "labels"


@register
class MultiLabel(OnHead):
    """``-(y log s(z) + (1 - y) log(1 - s(z)))`` in nats, the mean over rows and labels; ``s`` is the logistic function.

    A batch has what the model reads, and ``labels`` [B, N] of zeros and ones.
    """

    class Settings(OnHeadSettings):
        """``head`` is trained."""

        kind: Literal["multi_label"] = "multi_label"
        head: str = "sequence"

    needs = ("ids", "labels")

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one number for each label that occurs."""
        return NeededHead(self.head, "sequence", len(labels), tuple(labels), "multi_label_classification")

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the questions: rows times labels."""
        return {TERM: batch["labels"].numel()}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed binary cross entropy."""
        import torch

        labels_BN = batch["labels"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            logits_BN = head(x_BLD, real_BL)
            wide_BN = logits_BN if logits_BN.dtype == torch.float64 else logits_BN.float()
            binary = torch.nn.functional.binary_cross_entropy_with_logits
            return binary(wide_BN, labels_BN.to(wide_BN.dtype), reduction="sum")

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, labels_BN.numel())}
