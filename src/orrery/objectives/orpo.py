"""Odds ratio preference optimisation (ORPO): likelihood of the chosen reply and odds against the rejected, in one."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Term, register
from orrery.objectives._preferences import (
    LIKELIER,
    REWARDS,
    TERM,
    OverPairs,
    difference,
    likelier,
    sigmoid_cost,
    told,
)
from orrery.objectives._replies import OnReplies, reply_lengths, token_log_probabilities
from orrery.schema.numbers import AboveZero
from orrery.schema.section import Section

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from orrery.models.inputs import Batch

NEXT_TOKEN = "next_token"


@register
class OddsRatioPreference(OverPairs, OnReplies):
    """``-log p(x, y_w)`` a token, plus ``-beta log s(log odds(y_w) - log odds(y_l))``, the mean over pairs, in nats.

    ``log odds(y) = l - log(1 - exp(l))`` with ``l = log p(y | x) / |y|``; ``s`` is the logistic function. Hong et al.
    2024, equations 6 and 7; ``beta`` is their lambda. There is no reference model. A batch has ``ids``, ``real`` and
    ``reply`` [B, 2, L].

    As in trl the first term counts the tokens of the prompt too.
    """

    class Settings(Section):
        """``beta`` is the weight of the odds beside the likelihood."""

        kind: Literal["orpo"] = "orpo"
        beta: AboveZero = 0.1

    metrics = ("loss", *REWARDS, "likelihood_accuracy")

    def __init__(self, beta: float = 0.1) -> None:
        self.beta = beta

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the pairs, and the tokens that the chosen sides predict."""
        learnt = int(batch["real"][:, 0, 1:].sum())
        return {NEXT_TOKEN: learnt, **super().counts(batch), LIKELIER: len(batch["ids"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the chosen sides, the summed cost of the odds, and what is told."""
        import torch

        real_BL, reply_B2L = batch["real"][:, 0], batch["reply"]
        # Of the chosen side all tokens are learnt, of the rejected one those of the reply are measured.
        scored_B2L = torch.stack([real_BL, reply_B2L[:, 1]], 1)
        found_B2L = token_log_probabilities(model, {**batch, "reply": scored_B2L})
        log_p_B2 = (found_B2L * reply_B2L[..., 1:]).sum(-1)
        mean_B2 = log_p_B2 / reply_lengths(batch)
        return {
            NEXT_TOKEN: Term(-found_B2L[:, 0].sum(), real_BL[:, 1:].sum()),
            TERM: Term(sigmoid_cost(difference(log_odds(mean_B2))).sum(), len(mean_B2), self.beta),
            **told(self.beta * mean_B2),
            **likelier(log_p_B2),
        }


def log_odds(log_p: "Float[Tensor, '*rows']") -> "Float[Tensor, '*rows']":
    """Return ``l - log(1 - exp(l))`` of log probabilities.

    Those within one rounding of zero count as that far below it: the odds of what is certain are infinite.
    """
    import torch

    below = log_p.clamp(max=-torch.finfo(log_p.dtype).eps)
    rare = torch.log1p(-below.exp())
    return below - torch.where(below < -0.6931471805599453, rare, torch.log(-torch.expm1(below)))
