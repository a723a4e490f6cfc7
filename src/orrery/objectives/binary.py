"""Binary cross entropy of one number: the objective of rerankers, which say how well a passage answers a query."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import DataError, UsageError
from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_head import OnHead, OnHeadSettings
from orrery.schema.numbers import AboveZero

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "binary"


@register
class BinaryCrossEntropy(OnHead):
    """``-(w y log s(z) + (1 - y) log(1 - s(z)))`` in nats, the mean over rows; ``s`` is the logistic function.

    Nogueira and Cho 2019, equation 1. A batch has what the model reads, and ``labels`` [B] from 0 to 1. ``w`` is
    ``positive_weight``. As sentence-transformers' ``BinaryCrossEntropyLoss`` with its ``pos_weight``; a score is
    ``s(z)``.
    """

    class Settings(OnHeadSettings):
        """``head`` is trained; ``positive_weight`` is how much a right row counts, such as the wrong ones per right."""

        kind: Literal["binary"] = "binary"
        head: str = "sequence"
        positive_weight: AboveZero = 1.0

    needs = ("ids", "labels")

    def __init__(self, head: str = "sequence", positive_weight: float = 1.0, word_dropout: float = 0.0) -> None:
        super().__init__(head, word_dropout)
        self.positive_weight = positive_weight

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a head whose numbers are no logits, and what `OnHead` refuses.

        Raises:
            UsageError: there is no head of this name with one number, or it was taught numbers as they are.
        """
        super().bind(spec, tokenizer)
        head: Any = spec.heads.get(self.head)
        if head is not None and (getattr(head, "labels", 0) != 1 or getattr(head, "problem", "") == "regression"):
            gives = "numbers as they are" if getattr(head, "labels", 0) == 1 else "no one number a row"
            message = f"the objective binary learns one logit a row, and the head {self.head} gives {gives}"
            raise UsageError(message, "begin from a model without this head, or with one that was trained on logits")

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one number, which readers of the folder send through a sigmoid."""
        return NeededHead(self.head, "sequence", 1)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Refuse labels that are no shares, and hide words where the recipe asks for it.

        Raises:
            DataError: a label is below 0 or above 1.
        """
        least, most = float(batch["labels"].min()), float(batch["labels"].max())
        if not (least >= 0 and most <= 1):
            beyond = most if least >= 0 else least
            message = f"the objective binary learns numbers from 0 (does not fit) to 1 (fits), and one is {beyond:g}"
            hint = "divide them by their largest, or leave objective.kind out: regression learns any number"
            raise DataError(message, hint)
        return super().prepare(batch, rng)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the rows."""
        return {TERM: len(batch["labels"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed binary cross entropy."""
        import torch

        wanted_B = batch["labels"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            z_B = head(x_BLD, real_BL).squeeze(-1)
            wide_B = z_B if z_B.dtype == torch.float64 else z_B.float()
            weight = wide_B.new_tensor(self.positive_weight)
            binary = torch.nn.functional.binary_cross_entropy_with_logits
            return binary(wide_B, wanted_B.to(wide_B.dtype), pos_weight=weight, reduction="sum")

        (total,) = model(batch, {self.head: summed}).values()
        return {TERM: Term(total, len(wanted_B))}

    def evaluated(self) -> "BinaryCrossEntropy":
        """Return the objective without weights and word dropout."""
        return BinaryCrossEntropy(self.head)
