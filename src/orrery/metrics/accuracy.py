"""Accuracy: how often the likeliest answer is the right one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import check_head, field_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


@register
class Accuracy(Metric):
    """``mean [argmax_v logits(v) = target]`` over the targets that are not -100; of equal logits the first counts."""

    class Settings(MetricSettings):
        """``head`` gives the logits, the main one by default; ``field`` of a batch is what it should say."""

        kind: Literal["accuracy"] = "accuracy"
        head: str | None = None
        field: str = "targets"

    higher_is_better = True

    def __init__(self, head: str | None = None, field: str = "targets") -> None:
        self.head, self.field = head, field

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without the head.

        Raises:
            UsageError: it has none of this name.
        """
        if self.head is not None:
            check_head("accuracy", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return how many answers are right, and how many there are."""
        import torch

        from orrery.nn.cross_entropy import IGNORED, in_pieces

        targets = field_of("accuracy", batch, self.field)

        def right(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            if targets.ndim == 1:
                return (head(x_BLD, real_BL).argmax(-1) == targets)[targets != IGNORED].sum()
            rows, wanted = x_BLD.flatten(0, 1), targets.flatten()
            kept = wanted != IGNORED
            pieces = in_pieces(head, rows[kept], wanted[kept])
            return torch.stack([(head(x).argmax(-1) == y).sum() for x, y in pieces]).sum()

        (right_answers,) = model(batch, {self.head or model.spec.head_names[0]: right}).values()
        return torch.stack([right_answers, (targets != IGNORED).sum()]).double()

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the share of right answers; 0 where nothing was asked."""
        right, targets = sums.tolist()
        return right / max(1.0, targets)
