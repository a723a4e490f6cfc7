"""Extractive question answering: where in a text an answer begins and where it ends."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import NeededHead, Term, register
from orrery.objectives._on_head import OnHead, OnHeadSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERMS = ("start", "end")


@register
class QuestionAnswering(OnHead):
    """``-(log p(start | x) + log p(end | x)) / 2`` in nats; Devlin et al. 2019, section 4.2.

    Each is a softmax over the tokens of the row. A text without the answer has both at its first token. A batch has
    what the model reads, ``starts`` and ``ends`` [B].
    """

    class Settings(OnHeadSettings):
        """``head`` is trained."""

        kind: Literal["question_answering"] = "question_answering"
        head: str = "span"

    needs = ("ids", "starts", "ends")

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with two numbers for every token."""
        return NeededHead(self.head, "span", 2)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the rows, once for each end."""
        return dict.fromkeys(TERMS, len(batch["starts"]))

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the beginnings and of the ends."""
        import torch

        from orrery.nn.cross_entropy import summed_cross_entropy

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> list["Tensor"]:
            logits_BL2 = head(x_BLD, real_BL)
            if real_BL is not None:
                logits_BL2 = logits_BL2.masked_fill(~real_BL[..., None], torch.finfo(logits_BL2.dtype).min)
            wanted = (batch["starts"], batch["ends"])
            return [summed_cross_entropy(logits_BL2[..., i], wanted[i], 0.0) for i in range(2)]

        (sums,) = model(batch, {self.head: summed}).values()
        return {name: Term(total, len(batch["starts"]), 0.5) for name, total in zip(TERMS, sums, strict=True)}
