"""Matthews' correlation of predicted and right labels, for classes of unequal size."""

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
class Matthews(Metric):
    """The correlation of the likeliest label with the right one, ``[B]`` (see `orrery.scores.classification`)."""

    class Settings(MetricSettings):
        """``head`` gives the logits, ``field`` of a batch is what is right; -100 is not asked."""

        kind: Literal["matthews"] = "matthews"
        head: str = "sequence"
        field: str = "labels"

    higher_is_better = True

    def __init__(self, head: str = "sequence", field: str = "labels") -> None:
        self.head, self.field, self.labels = head, field, 0

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the number of labels.

        Raises:
            UsageError: the model has no such head, or the head no labels.
        """
        self.labels = labels_of("matthews", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return how many are right, are predicted as each label and are each label, ``[1 + 2 * labels]``."""
        import torch

        from orrery.nn.cross_entropy import IGNORED

        right, logits = field_of("matthews", batch, self.field), said_by(model, batch, self.head)
        labelled = right != IGNORED
        check_labels("matthews", right[labelled], self.labels)
        ours, theirs = logits[labelled].argmax(-1), right[labelled].long()
        counts = [torch.bincount(side, minlength=self.labels) for side in (ours, theirs)]
        return torch.cat([(ours == theirs).sum()[None], *counts]).double()

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the correlation; 0 where one side never changes."""
        from orrery.scores.classification import matthews_of

        return matthews_of(sums.numpy())
