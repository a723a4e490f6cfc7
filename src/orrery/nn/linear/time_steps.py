"""How a state space draws its step sizes: evenly on a logarithmic scale, so that memories are long and short."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.nn.initialisation import Draw
from orrery.nn.spec import Value, spec


@spec
class TimeSteps(Value):
    """Step sizes of new channels: from ``low`` to ``high``, none below ``floor``; ``scale`` on what a token changes.

    Gu and Dao 2023, section 3.6: a step of 0.001 makes a channel remember for about a thousand tokens.
    """

    low: float = 0.001
    high: float = 0.1
    floor: float = 1e-4
    scale: float = 1.0

    def draw(self, draw: Draw, channels: int) -> Float[Tensor, "F"]:
        """Return as many step sizes."""
        even = torch.empty(channels)
        draw.uniform(even, 0.5)
        return ((even + 0.5) * math.log(self.high / self.low) + math.log(self.low)).exp().clamp(min=self.floor)

    def draw_bias(self, draw: Draw, channels: int) -> Float[Tensor, "F"]:
        """Return what ``softplus`` makes step sizes of."""
        dt_F = self.draw(draw, channels)
        return dt_F + torch.log(-torch.expm1(-dt_F))
