"""Segmentation: one label for each pixel."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_labels import OnLabels, OnLabelsSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "pixel"


@register
class Segmentation(OnLabels):
    """``-w_y log p(y_ij | x)`` in nats, summed over the pixels ``ij`` whose target is not -100 (Long et al. 2015).

    The weights ``w`` are 1 or those of ``class_weights``. Where a head scores a coarser grid than the picture's, its
    scores are enlarged bilinearly, as in SegFormer (Xie et al. 2021). A batch has ``images`` and ``targets``
    [B, rows, columns].
    """

    class Settings(OnLabelsSettings):
        """``head`` is trained."""

        kind: Literal["segmentation"] = "segmentation"
        head: str = "pixel"

    needs = ("images", "targets")

    @classmethod
    def measured(cls, settings: Any) -> tuple[Mapping[str, Any], ...]:
        """Return the mean IoU, which decides, and the loss."""
        return ({"kind": "mean_iou", "head": settings.head}, {"kind": "loss"})

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the head: the one that is named, or SegFormer's own.

        Raises:
            UsageError: the model has neither.
        """
        from orrery.models.pixel_scores import pixel_head

        self.head = pixel_head(spec, self.head)
        super().bind(spec, tokenizer)

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head."""
        from orrery.models.pixel_scores import pixel_head

        return (pixel_head(spec, self.head),)

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one label for each that occurs."""
        self.label_counts = labels
        return NeededHead(self.head, "pixel", len(labels), tuple(labels))

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the pixels."""
        from orrery.nn.cross_entropy import IGNORED

        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the pictures, whose pixels no speed is told in."""
        return len(batch["images"])

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the pixels."""
        from orrery.models.pixel_scores import labels_second
        from orrery.nn.cross_entropy import IGNORED

        targets = batch["targets"].long()

        def summed(head: "nn.Module", x_BLD: "Tensor", real: "Tensor | None") -> "Tensor":
            logits = enlarged(labels_second(head(x_BLD, real), self.head), targets.shape[1:])
            return self.summed(logits, targets)

        found: Tensor = model(batch, {self.head: summed})[self.head]
        return {TERM: Term(found, (targets != IGNORED).sum())}


def enlarged(logits: "Tensor", size: Any) -> "Tensor":
    """Return the scores of pixels, ``[B, N, rows, columns]``, in another size, bilinearly."""
    from torch.nn.functional import interpolate

    if tuple(logits.shape[2:]) == tuple(size):
        return logits
    return interpolate(logits, tuple(size), mode="bilinear", align_corners=False)
