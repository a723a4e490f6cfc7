"""The weight of the divergence in PPO's reward: fixed, or led to a goal."""

import torch
from torch import Tensor, nn


class KlControl(nn.Module):
    """``b <- b (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon)`` after each rollout of ``n`` answers.

    Ziegler et al. 2019, section 2.2. ``KL`` is the mean over answers of the sum over their tokens. A fixed weight has
    no horizon, and stays.
    """

    weight: Tensor

    def __init__(self, weight: float, target: float = 1.0, horizon: float = float("inf")) -> None:
        super().__init__()
        self.target, self.horizon = target, horizon
        self.register_buffer("weight", torch.tensor(weight, dtype=torch.float64))

    def follow(self, kl: float, answers: int) -> None:
        """Change the weight after a rollout, which was rewarded with the old one."""
        error = min(max(kl / self.target - 1, -0.2), 0.2)
        self.weight.mul_(1 + error * answers / self.horizon)
