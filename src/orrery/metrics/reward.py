"""Reward: what answers to prompts held back are worth, on average."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import field_of

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.objectives import Term


@register
class MeanReward(Metric):
    """The mean reward of the likeliest answer to each prompt; of rewards that are 0 or 1, the share of right answers.

    Differs from training, where answers are drawn.
    """

    class Settings(MetricSettings):
        """It has no settings."""

        kind: Literal["reward"] = "reward"

    higher_is_better = True

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the sum of the rewards, and how many there are."""
        import torch

        reward_B = field_of("reward", batch, "reward")
        return torch.stack([reward_B.sum().double(), torch.tensor(float(len(reward_B)), dtype=torch.float64)])

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the mean; 0 where nothing was asked."""
        total, count = sums.tolist()
        return total / max(1.0, count)
