"""GRPO with every token of a batch counted alike and more room to raise a probability than to lower it."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._group_policy import GroupPolicy, GroupSettings
from orrery.schema.numbers import AboveZero, NotNegative

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch


@register
class Dapo(GroupPolicy):
    """``mean over all tokens of -min(r A, clip(r, 0.8, 1.28) A) + beta k3``, in nats: long answers are not favoured.

    Yu et al. 2025, equations 8 and 12 (the clip range and the mean over tokens); trl's ``loss_type="dapo"``.

    Differs from the paper: prompts whose answers are all right or all wrong stay in the batch, where they have no
    advantage.
    """

    class Settings(GroupSettings):
        """The paper's bounds, and no penalty."""

        kind: Literal["dapo"] = "dapo"
        clip_higher: AboveZero = 0.28
        beta: NotNegative = 0.0

    def __init__(self, clip: float = 0.2, clip_higher: float = 0.28, beta: float = 0.0, unbiased: float = 0.0) -> None:
        super().__init__(clip, clip_higher, beta, unbiased)

    def count(self, batch: "Batch") -> int:
        """Return the number of tokens."""
        return int(batch["written"].sum())

    def summed(self, cost_BL: "Tensor", batch: "Batch") -> "Tensor":
        """Return the sum over tokens."""
        total: Tensor = (cost_BL * batch["written"]).sum()
        return total
