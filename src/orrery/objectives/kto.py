"""Kahneman-Tversky optimisation (KTO): replies that are good or bad each by itself, without pairs."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Term, register
from orrery.objectives._preferences import CHOSEN, KL, REJECTED, divergence
from orrery.objectives._replies import AgainstReference, reply_lengths, token_log_probabilities
from orrery.schema.numbers import AboveZero, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch

TERM = "value"


@register
class KahnemanTversky(AgainstReference):
    """``a (1 - s(beta (h - z)))`` of desirable replies, ``b (1 - s(beta (z - h)))`` of others, the mean over both.

    ``h(y) = log p(y | x) - log p_ref(y | x)``, ``s`` is the logistic function, and ``z`` the mean of ``h`` over prompts
    with replies to other prompts of the batch, or 0 where that is negative; it has no gradient. Ethayarajh et al. 2024,
    equations 7 and 8. A batch has ``ids``, ``real`` and ``reply`` [B, 2, L], the second of each a prompt with another's
    reply, and ``desirable`` [B].

    The mean ties the examples of a batch together, so that the batch cannot be split.
    """

    class Settings(Section):
        """``beta`` holds the model to the reference; ``desirable`` and ``undesirable`` are the weights of the two.

        Where there are fewer of one kind its weight times its number should be as large as that of the other, up to a
        third more for the desirable ones (Ethayarajh et al. 2024, section 4.2).
        """

        kind: Literal["kto"] = "kto"
        beta: AboveZero = 0.1
        desirable: NotNegative = 1.0
        undesirable: NotNegative = 1.0

    needs = (*AgainstReference.needs, "desirable")
    reports = (CHOSEN, REJECTED, KL)
    metrics = ("loss", "reward_margin", "reward_chosen", "reward_rejected", "kl")

    def __init__(self, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0) -> None:
        self.beta, self.weights = beta, (desirable, undesirable)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the replies, those of each kind, and their tokens."""
        good = int(batch["desirable"].sum())
        tokens = int(reply_lengths(batch)[:, 0].sum())
        return {TERM: len(batch["ids"]), CHOSEN: good, REJECTED: len(batch["ids"]) - good, KL: tokens}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cost of the replies, and what is told."""
        import torch

        own, others, desirable_B = side(batch, 0), side(batch, 1), batch["desirable"]
        reference_B2L = token_log_probabilities(self.reference, batch)
        with torch.no_grad():
            mismatched_BL = token_log_probabilities(model, others) - reference_B2L[:, 1]
            z = mismatched_BL.sum(-1).mean().clamp(min=0)
        ratios_BL = token_log_probabilities(model, own) - reference_B2L[:, 0]
        h_B = ratios_BL.sum(-1)
        good, bad = self.weights
        gain_B, loss_B = (self.beta * (h_B - z)).sigmoid(), (self.beta * (z - h_B)).sigmoid()
        costs_B = torch.where(desirable_B, good * (1 - gain_B), bad * (1 - loss_B))
        rewards_B = self.beta * h_B.detach()
        return {
            TERM: Term(costs_B.sum(), len(costs_B), coupled=True),
            CHOSEN: Term(rewards_B[desirable_B].sum(), desirable_B.sum(), weight=0.0),
            REJECTED: Term(rewards_B[~desirable_B].sum(), (~desirable_B).sum(), weight=0.0),
            **divergence(ratios_BL, reply_lengths(own)),
        }


def side(batch: "Batch", place: int) -> "dict[str, Tensor]":
    """Return the rows of one of two sides. Shapes: ``[B, 2, L]`` to ``[B, L]``."""
    return {name: batch[name][:, place] for name in ("ids", "real", "reply")}
