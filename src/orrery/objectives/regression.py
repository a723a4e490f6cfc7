"""Regression: a number for each row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_head import OnHead, OnHeadSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "squared_error"


@register
class Regression(OnHead):
    """``((y - head(x)) / s)^2``, the mean over rows. A batch has what the model reads, and ``labels`` [B], numbers.

    ``s`` is the spread of the head's unit, that of the training numbers: a loss of 1 is that of their mean.
    """

    class Settings(OnHeadSettings):
        """``head`` is trained."""

        kind: Literal["regression"] = "regression"
        head: str = "sequence"

    needs = ("ids", "labels")

    def __init__(self, head: str = "sequence", word_dropout: float = 0.0) -> None:
        super().__init__(head, word_dropout)
        self.spread = 1.0

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the spread of the head's unit.

        Raises:
            UsageError: there is no head of this name, or words are to be hidden and nothing hides them.
        """
        super().bind(spec, tokenizer)
        unit: Any = getattr(spec.heads.get(self.head), "unit", None)
        self.spread = getattr(unit, "spread", 1.0)

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one number."""
        return NeededHead(self.head, "sequence", 1, (), "regression")

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the rows."""
        return {TERM: len(batch["labels"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed squared error."""
        import torch

        wanted_B = batch["labels"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            found_B = head(x_BLD, real_BL).squeeze(-1)
            wide_B = found_B if found_B.dtype == torch.float64 else found_B.float()
            return ((wide_B - wanted_B) / self.spread).square().sum()

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, len(wanted_B))}
