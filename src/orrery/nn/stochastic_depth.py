"""Stochastic depth: in training whole branches are left out, row by row."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.parting import Grain
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class StochasticDepth(nn.Module):
    """``x * keep / (1 - rate)`` in training, ``x`` otherwise; each row's ``keep`` is 0 with probability ``rate``.

    Huang et al. 2016, scaled in training. It fills the slot behind a branch. Shapes: ``[B, L, D]`` unchanged.
    """

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The share of rows whose branch is left out in training."""

        rate: float

        def build(self, width: int) -> nn.Module:
            """Return the slot, or nothing at rate zero."""
            return StochasticDepth(self.rate) if self.rate else Identity()

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """Leave the branch of some rows out."""
        if not self.training:
            return x_BLD
        keep_B11 = torch.rand(len(x_BLD), 1, 1, device=x_BLD.device) >= self.rate
        return x_BLD * keep_B11.to(x_BLD.dtype).div_(1 - self.rate)
