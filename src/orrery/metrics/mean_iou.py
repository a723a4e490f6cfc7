"""Mean IoU: how far what is said of pixels covers what is right, the mean over the labels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import check_labels, field_of, labels_of, said_by

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


@register
class MeanIoU(Metric):
    """``mean_c b_c / (p_c + g_c - b_c)``: pixels said and right over those said or right, of all pictures together.

    The mean is over the labels that occur on either side (Everingham et al. 2015); a target of -100 is not asked.
    """

    class Settings(MetricSettings):
        """``head`` gives the scores of pixels, ``field`` of a batch is what is right."""

        kind: Literal["mean_iou"] = "mean_iou"
        head: str = "pixel"
        field: str = "targets"

    higher_is_better = True

    def __init__(self, head: str = "pixel", field: str = "targets") -> None:
        self.head, self.field, self.labels = head, field, 0

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the number of labels.

        Raises:
            UsageError: the model has no such head, or the head no labels.
        """
        from orrery.models.pixel_scores import pixel_head

        self.head = pixel_head(spec, self.head)
        self.labels = labels_of("mean_iou", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the counts ``[3 * labels]``: said and right, said, right."""
        import torch

        from orrery.models.pixel_scores import labels_second
        from orrery.nn.cross_entropy import IGNORED
        from orrery.objectives.segmentation import enlarged

        right = field_of("mean_iou", batch, self.field).long()
        scores = labels_second(said_by(model, batch, self.head), self.head)
        said = enlarged(scores, right.shape[1:]).argmax(1)
        asked = right != IGNORED
        check_labels("mean_iou", right[asked], self.labels)
        ours, theirs = said[asked], right[asked]
        parts = (ours[ours == theirs], ours, theirs)
        return torch.cat([part.bincount(minlength=self.labels) for part in parts]).double()

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the mean over the labels; 0 where nothing was asked."""
        from orrery.scores.segmentation import mean_iou_of

        return mean_iou_of(sums.numpy())
