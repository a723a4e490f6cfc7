"""The output of state spaces that mix no channels themselves: a GELU and a gated linear unit behind them."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.initialisation import Draw
from orrery.nn.mixer import Show


class GatedOutput(nn.Module):
    """``(W gelu(y) + b) * sigmoid(G gelu(y) + d)`` (Dauphin et al. 2017; Gu et al. 2022). Shapes: ``[B, L, D]``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def initialise(self, draw: Draw) -> None:
        """Draw as usual."""
        for name, part in self.named_children():
            draw.usual(part, name)

    def forward(self, y_BLD: Float[Tensor, "B L D"], show: Show) -> Float[Tensor, "B L D"]:
        """Mix the channels; ``show`` sees the gate."""
        y_BLD = F.gelu(y_BLD)
        return self.out(y_BLD) * show("gate", torch.sigmoid(self.gate(y_BLD)))
