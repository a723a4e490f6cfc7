"""How often a span is found exactly: its first and its last token."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import check_head, field_of, said_by

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


@register
class SpanExact(Metric):
    """``mean [argmax_l logits(l, 0) = start and argmax_l logits(l, 1) = end]`` over the rows that have a span.

    The head says two numbers a token, ``[B, L, 2]``; ``starts`` and ``ends`` are ``[B]``, -100 in rows without a span.
    """

    class Settings(MetricSettings):
        """``head`` gives the logits."""

        kind: Literal["span_exact"] = "span_exact"
        head: str = "span"

    higher_is_better = True

    def __init__(self, head: str = "span") -> None:
        self.head = head

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without the head.

        Raises:
            UsageError: it has none of this name.
        """
        check_head("span_exact", spec, self.head)

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return how many spans are found, and how many there are."""
        import torch

        from orrery.nn.cross_entropy import IGNORED

        starts, ends = (field_of("span_exact", batch, field) for field in ("starts", "ends"))
        positions_B2 = said_by(model, batch, self.head).argmax(1)
        labelled = starts != IGNORED
        right = (positions_B2[:, 0] == starts) & (positions_B2[:, 1] == ends) & labelled
        return torch.stack([right.sum(), labelled.sum()]).double()

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the share of spans that are found; 0 where there was none."""
        right, questions = sums.tolist()
        return right / max(1.0, questions)
