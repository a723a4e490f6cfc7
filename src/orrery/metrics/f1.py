"""F1 over the labels of a head, one or several for each row."""

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
class F1(Metric):
    """``2 b / (p + g)`` with ``b`` predicted and right, ``p`` predicted, ``g`` right; averaged over the labels.

    Labels ``[B]`` are the likeliest one, -100 is not asked; of ``[B, N]`` with 0 and 1 those with a logit above 0.
    """

    class Settings(MetricSettings):
        """``average`` is macro, micro or weighted; ``head`` gives the logits, ``field`` of a batch is what is right."""

        kind: Literal["f1"] = "f1"
        average: Literal["macro", "micro", "weighted"] = "macro"
        head: str = "sequence"
        field: str = "labels"

    higher_is_better = True

    def __init__(
        self, average: Literal["macro", "micro", "weighted"] = "macro", head: str = "sequence", field: str = "labels"
    ) -> None:
        self.average, self.head, self.field, self.labels = average, head, field, 0

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the number of labels.

        Raises:
            UsageError: the model has no such head, or the head no labels.
        """
        self.labels = labels_of("f1", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the counts ``[3 * labels]``: predicted and right, predicted, right."""
        import torch
        from torch.nn.functional import one_hot

        from orrery.nn.cross_entropy import IGNORED

        right, logits = field_of("f1", batch, self.field), said_by(model, batch, self.head)
        if right.ndim == 2:
            ours, theirs = logits > 0, right > 0
        else:
            labelled = right != IGNORED
            check_labels("f1", right[labelled], self.labels)
            ours = one_hot(logits[labelled].argmax(-1), self.labels).bool()
            theirs = one_hot(right[labelled].long(), self.labels).bool()
        return torch.cat([(ours & theirs).sum(0), ours.sum(0), theirs.sum(0)]).double()

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the averaged F1; 0 where nothing was asked."""
        from orrery.scores.precision_recall import f1_of

        return f1_of(sums.numpy(), self.average)
