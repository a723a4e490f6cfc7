"""The Taylor feature map: a kernel that is the exponential of attention up to its second power."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.spec import ModuleSpec, spec


class Taylor(nn.Module):
    """``phi(q) phi(k) = 1 + s + s^2 / 2`` with ``s = q k / sqrt(C)`` (Based: Arora et al. 2024, section 4.1).

    A map for ``LinearAttention``; every product is at least one half. Differs from the paper: a product of two
    channels stands among the features once, not in both orders, so that a state is little more than half as large and
    no number changes. Shapes: ``[B, L, H, C]`` to ``[B, L, H, 1 + C + C (C + 1) / 2]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings; the paper's keys have 16 channels."""

        def out_width(self, width: int) -> int:
            """Return the number of features."""
            return 1 + width + width * (width + 1) // 2

        def build(self, width: int) -> "Taylor":
            """Return the map for keys of so many channels."""
            return Taylor(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x_BLHC: Float[Tensor, "B L H C"]) -> Float[Tensor, "B L H C2"]:
        """Return one, the channels, and their products."""
        scaled = x_BLHC * self.width**-0.25
        first, second = torch.triu_indices(self.width, self.width, 1, device=x_BLHC.device)
        squares, products = scaled.square() * 0.5**0.5, scaled[..., first] * scaled[..., second]
        return torch.cat([torch.ones_like(scaled[..., :1]), scaled, squares, products], -1)
