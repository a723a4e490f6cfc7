"""How far in front the next item stands in the ranking of all items."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import field_of
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


ASKED = ("asked", "ends", "place", "next")
"""The fields of a batch that it reads."""


@register
class NextItemGain(Metric):
    """NDCG@k: ``mean [r <= k] / log2(r + 1)``, with r the rank of the next item among all items.

    Equal scores count half (`orrery.scores.ranks`). Control tokens are no items; those of the history are ranked where
    ``seen`` says so. A batch has what is ``asked`` [B L], where that ``ends`` [B], the ``place`` of the answer [B] and
    what comes ``next`` [B], as data of kind interactions give.
    """

    class Settings(MetricSettings):
        """``at`` is k, ``seen`` ranks the items of the history too."""

        kind: Literal["ndcg"] = "ndcg"
        at: Positive = 10
        seen: bool = False

    higher_is_better = True

    def __init__(self, at: int = 10, seen: bool = False) -> None:
        self.at, self.seen = at, seen
        self.items_V: Tensor

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Find out which tokens are items."""
        import torch

        size = 0 if tokenizer is None else tokenizer.size
        self.items_V = torch.ones(size, dtype=torch.bool)
        if tokenizer is not None:
            self.items_V[[id for id in (*tokenizer.control, tokenizer.unknown_id) if id is not None]] = False

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sum of the gains, and how many histories there are."""
        import torch

        from orrery.models.next_items import candidates_of, scores_of
        from orrery.scores.ranks import gain, ranks_of

        asked_BL, ends_B, place_B, next_B = (field_of("ndcg", batch, field) for field in ASKED)
        scores_BV = scores_of(model, asked_BL, ends_B, place_B)
        kept_BV = candidates_of(self.items_V.to(asked_BL.device), asked_BL, place_B, scores_BV.shape[1], self.seen)
        ranks_B = ranks_of(*(each.cpu().numpy() for each in (scores_BV.double(), next_B, kept_BV)))
        return torch.tensor([gain(self.at, ranks_B).sums[:, 0].sum(), len(ranks_B)], dtype=torch.float64)

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the mean gain."""
        gain, count = sums.tolist()
        return gain / max(1.0, count)
