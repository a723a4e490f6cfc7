"""Advantages among the answers to one prompt, and the clipped ratio of each token: what GRPO and its kin share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orrery.objectives import Term
from orrery.objectives._policy import (
    Policy,
    PolicySettings,
    centred,
    deviation,
    kl_estimates,
    log_probability,
    refuse_other_scores,
    refuse_unnormalised,
    seen_entropy,
    seen_score,
    tell,
)
from orrery.schema.numbers import AboveZero, NotNegative, Share

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from orrery.models.inputs import Batch

POLICY, PENALTY = "policy", "penalty"
TINY = 1e-4
"""Added to the standard deviation of a group, as in trl: equal rewards give no advantage."""


class GroupSettings(PolicySettings, ABC):
    """``clip`` bounds the ratio from below and ``clip_higher`` from above; ``beta`` weighs the divergence.

    The divergence of a token is multiplied by its ratio to the power ``unbiased``: 0 is the equation of Shao et al.;
    with 1 the gradient is that of the divergence itself (DeepSeek-V3.2, 2025), trl's default.
    """

    clip: AboveZero = 0.2
    clip_higher: AboveZero = 0.2
    beta: NotNegative = 0.04
    unbiased: Share = 0.0


class GroupPolicy(Policy, ABC):
    """``-min(r A, clip(r, 1 - e, 1 + e') A) + beta r^u k3`` a token, ``r`` its ratio; kinds differ in the mean."""

    def __init__(self, clip: float = 0.2, clip_higher: float = 0.2, beta: float = 0.04, unbiased: float = 0.0) -> None:
        self.low, self.high, self.beta, self.unbiased = 1 - clip, 1 + clip_higher, beta, unbiased

    @abstractmethod
    def summed(self, cost_BL: "Tensor", batch: "Batch") -> "Tensor":
        """Return the sum over rows and tokens, each token with its share."""

    @abstractmethod
    def count(self, batch: "Batch") -> int:
        """Return what the sum is divided by."""

    def observe(self, model: Any, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return the log probabilities by the reference, and, where several steps learn from a rollout, by the model.

        A rollout of one step needs none by the model as it wrote: there it is the model that learns.
        """
        if not ("once" in batch and bool(batch["once"].all())):
            return super().observe(model, batch)
        (reference_BL,) = tell(self.reference, batch, log_probability).measures
        return {"reference": reference_BL}

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return the advantage of each answer: its reward over the mean of its group's, by their deviation."""
        advantages_B = group_advantages(batch["reward"], batch["group"], scaled=True)
        return {"advantages": advantages_B}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count rows or tokens, whichever the mean is over."""
        count = self.count(batch)
        return {POLICY: count, PENALTY: count, **self.counted(batch)}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the surrogate, the penalty and the measures.

        Raises:
            RunError: nobody has looked yet whether the log probabilities are those that the engine drew by, and they
                are not.
        """
        if "old" in batch:
            new_BL, entropy_BL = tell(model, batch, log_probability, seen_entropy).measures
        else:
            new_BL, entropy_BL, scores_BL = tell(model, batch, log_probability, seen_entropy, seen_score).measures
            refuse_other_scores(scores_BL, batch["scores"])
            batch = {**batch, "old": new_BL.detach()}
        ratio_BL, advantages_B1 = (new_BL - batch["old"]).exp(), batch["advantages"][:, None]
        plain_BL = ratio_BL * advantages_B1
        bounded_BL = ratio_BL.clamp(self.low, self.high) * advantages_B1
        _, _, k3_BL = kl_estimates(new_BL, batch["reference"])
        count = self.count(batch)
        return {
            POLICY: Term(self.summed(-plain_BL.minimum(bounded_BL), batch), count),
            PENALTY: Term(self.summed(k3_BL * ratio_BL.pow(self.unbiased), batch), count, self.beta),
            **self.measures(batch, new_BL, entropy_BL, bounded_BL < plain_BL),
        }


def group_advantages(
    reward_B: "Float[Tensor, ' B']", group_B: "Int[Tensor, ' B']", *, scaled: bool
) -> "Float[Tensor, ' B']":
    """Return ``r - mean(group)``, or that over ``std(group) + 1e-4``; the deviation has ``n - 1`` below.

    They are computed in float64, so that answers which earn the same have no advantage, to the last bit.

    Raises:
        RunError: a group's advantages are not normalised.
    """
    import torch

    found_B = torch.zeros_like(reward_B)
    for group in group_B.unique():
        own = group_B == group
        apart = centred(reward_B[own])
        spread = deviation(reward_B[own])
        advantages_N = apart / (spread + TINY) if scaled else apart
        refuse_unnormalised(advantages_N, f"group {int(group)}", scale=spread / (spread + TINY) if scaled else None)
        found_B[own] = advantages_N.to(found_B.dtype)
    return found_B
