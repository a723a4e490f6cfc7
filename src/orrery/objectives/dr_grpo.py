"""GRPO done right: no division by a group's deviation, none by an answer's own length."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._group_policy import GroupPolicy, GroupSettings, group_advantages
from orrery.schema.numbers import NotNegative

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch


@register
class DrGrpo(GroupPolicy):
    """``mean over answers of (sum over tokens of -min(r A, clip(r) A) + beta k3) / most``, ``most`` tokens allowed.

    ``A = reward - mean(group)``. Liu et al. 2025, section 3.2: dividing by an answer's length favours long wrong
    answers, dividing by the deviation favours prompts that are too easy or too hard. trl's ``loss_type="dr_grpo"`` with
    ``scale_rewards="none"``.
    """

    class Settings(GroupSettings):
        """The paper has no penalty."""

        kind: Literal["dr_grpo"] = "dr_grpo"
        beta: NotNegative = 0.0

    def __init__(self, clip: float = 0.2, clip_higher: float = 0.2, beta: float = 0.0, unbiased: float = 0.0) -> None:
        super().__init__(clip, clip_higher, beta, unbiased)

    def credit(self, batch: "Batch") -> "Mapping[str, Tensor]":
        """Return the advantage of each answer: its reward over the mean of its group's."""
        return {"advantages": group_advantages(batch["reward"], batch["group"], scaled=False)}

    def count(self, batch: "Batch") -> int:
        """Return the number of answers."""
        return len(batch["ids"])

    def summed(self, cost_BL: "Tensor", batch: "Batch") -> "Tensor":
        """Return the sum over answers, each over the most tokens that it may have."""
        total: Tensor = ((cost_BL * batch["written"]).sum(1) / batch["most"]).sum()
        return total
