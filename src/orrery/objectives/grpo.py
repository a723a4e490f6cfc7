"""Group relative policy optimisation: an answer is as good as it is better than the others to the same prompt."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._group_policy import GroupPolicy, GroupSettings

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch


@register
class Grpo(GroupPolicy):
    """``mean over answers of mean over tokens of -min(r A, clip(r) A) + beta k3``, in nats.

    ``A = (reward - mean(group)) / (std(group) + 1e-4)``. Shao et al. 2024, equation 3 and section 4.1.2; trl's
    ``loss_type="grpo"``. The reference is the model that the run begins with.
    """

    class Settings(GroupSettings):
        """See `GroupSettings`."""

        kind: Literal["grpo"] = "grpo"

    def count(self, batch: "Batch") -> int:
        """Return the number of answers."""
        return len(batch["ids"])

    def summed(self, cost_BL: "Tensor", batch: "Batch") -> "Tensor":
        """Return the sum over answers of the mean over their tokens."""
        written_BL = batch["written"]
        total: Tensor = ((cost_BL * written_BL).sum(1) / written_BL.sum(1).clamp(min=1)).sum()
        return total
