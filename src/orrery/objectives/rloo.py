"""REINFORCE leave-one-out: an answer against the mean of the others to the same prompt."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import RunError
from orrery.objectives import Term, register
from orrery.objectives._group_policy import POLICY
from orrery.objectives._policy import (
    Policy,
    PolicySettings,
    centred,
    log_probability,
    refuse_unnormalised,
    seen_entropy,
    tell,
)
from orrery.schema.numbers import AboveZero, NotNegative

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from orrery.models.inputs import Batch


@register
class Rloo(Policy):
    """``mean over answers of -min(r A, clip(r) A)`` with ``r`` the ratio of the whole answer, in nats.

    ``A = R - mean of the others' R`` in the group, and ``R = reward - beta sum_t (log old - log reference)``. Ahmadian
    et al. 2024, section 3: the whole answer is one action. trl's ``RLOOTrainer``.
    """

    class Settings(PolicySettings):
        """``clip`` bounds the ratio; ``beta`` weighs the divergence from the reference in the reward."""

        kind: Literal["rloo"] = "rloo"
        clip: AboveZero = 0.2
        beta: NotNegative = 0.05

    def __init__(self, clip: float = 0.2, beta: float = 0.05) -> None:
        self.low, self.high, self.beta = 1 - clip, 1 + clip, beta

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return the advantage of each answer."""
        kl_B = ((batch["old"] - batch["reference"]) * batch["written"]).sum(1)
        return {"advantages": left_out_advantages(batch["reward"] - self.beta * kl_B, batch["group"])}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the answers."""
        return {POLICY: len(batch["ids"]), **self.counted(batch)}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the surrogate and the measures."""
        new_BL, entropy_BL = tell(model, batch, log_probability, seen_entropy).measures
        ratio_B = ((new_BL - batch["old"]) * batch["written"]).sum(1).exp()
        plain_B = ratio_B * batch["advantages"]
        bounded_B = ratio_B.clamp(self.low, self.high) * batch["advantages"]
        clipped_BL = (bounded_B < plain_B)[:, None].expand_as(batch["ids"])
        total = -plain_B.minimum(bounded_B).sum()
        return {POLICY: Term(total, len(ratio_B)), **self.measures(batch, new_BL, entropy_BL, clipped_BL)}


def left_out_advantages(reward_B: "Float[Tensor, ' B']", group_B: "Int[Tensor, ' B']") -> "Float[Tensor, ' B']":
    """Return ``r_i - mean of the others' r`` in each group, which is ``n / (n - 1) (r_i - mean)``.

    Raises:
        RunError: a group has one answer, or the advantages of one do not add up to 0.
    """
    import torch

    found_B = torch.zeros_like(reward_B)
    for group in group_B.unique():
        own = group_B == group
        count = int(own.sum())
        if count < 2:
            raise RunError("a prompt with one answer has no other to be compared with", "raise data.samples to 2")
        advantages_N = centred(reward_B[own]) * (count / (count - 1))
        refuse_unnormalised(advantages_N, f"group {int(group)}", scale=None)
        found_B[own] = advantages_N.to(found_B.dtype)
    return found_B
