"""Reward modelling: a number for a conversation, larger for the reply that was preferred."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import NeededHead, Term, register
from orrery.objectives._preferences import REWARDS, TERM, OverPairs, difference, sigmoid_cost, told
from orrery.objectives._real import with_real
from orrery.schema.numbers import Fraction, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

CENTRE = "centre"


@register
class Reward(OverPairs):
    """``-log s(r(x, y_w) - r(x, y_l) - m)`` in nats, the mean over pairs; ``r`` is a head with one number a row.

    Bradley and Terry 1952; as a reward model Ouyang et al. 2022, equation 1, with the margin ``m`` of Touvron et al.
    2023 (Llama 2), equation 2. ``centre`` adds ``centre * (r(x, y_w) + r(x, y_l))^2`` (Eisenstein et al. 2023, section
    2), as the first term says nothing of where rewards lie. A batch has ``ids`` and ``real`` [B, 2, L], and ``margin``
    [B].
    """

    class Settings(Section):
        """``head`` is trained; ``centre`` draws rewards towards a mean of 0; ``label_smoothing`` as in ``dpo``."""

        kind: Literal["reward"] = "reward"
        head: str = "sequence"
        centre: NotNegative = 0.0
        label_smoothing: Fraction = 0.0

    needs = ("ids", "real", "margin")
    metrics = ("loss", *REWARDS)

    def __init__(self, head: str = "sequence", centre: float = 0.0, label_smoothing: float = 0.0) -> None:
        self.head, self.centre, self.label_smoothing = head, centre, label_smoothing

    def needed_head(self, labels: Mapping[str, int]) -> NeededHead | None:
        """Return a head with one number."""
        return NeededHead(self.head, "sequence", 1, (), "regression")

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without a head of this name that gives a row one number.

        Raises:
            UsageError: it has none.
        """
        head: Any = spec.heads.get(self.head)
        if getattr(head, "labels", None) != 1:
            known = ", ".join(spec.head_names) or "none"
            message = f"the objective reward trains a head {self.head} with one number, the model has {known}"
            raise UsageError(message, "leave model.heads out: the head is then added")

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head."""
        return (self.head,)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the pairs."""
        return {**super().counts(batch), CENTRE: len(batch["ids"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cost of the pairs, and the summed squares that draw rewards towards 0."""
        import torch

        ids_RL, real_RL = (batch[name].flatten(0, 1) for name in ("ids", "real"))

        def of_rows(head: "nn.Module", x_RLD: "Tensor", real: "Tensor | None") -> "Tensor":
            found_R = head(x_RLD, real).squeeze(-1)
            return found_R if found_R.dtype == torch.float64 else found_R.float()

        (found_R,) = model(with_real({"ids": ids_RL}, real_RL), {self.head: of_rows}).values()
        rewards_B2 = found_R.view(-1, 2)
        costs_B = sigmoid_cost(difference(rewards_B2) - batch["margin"], self.label_smoothing)
        return {
            TERM: Term(costs_B.sum(), len(costs_B)),
            CENTRE: Term(rewards_B2.sum(-1).square().sum(), len(costs_B), self.centre),
            **told(rewards_B2),
        }
