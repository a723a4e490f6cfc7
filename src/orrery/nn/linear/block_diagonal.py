"""A linear map whose matrix has blocks on its diagonal and zeros elsewhere."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn


class BlockDiagonal(nn.Module):
    """``y_h = x_h W_h + b_h``: the channels in H parts, each with a square matrix of its own (Griffin's gates).

    Shapes: ``[..., F]`` unchanged; W ``[H, C, E]`` with E = C, from the channels that come in to those that go out.
    """

    no_decay: ClassVar[tuple[str, ...]] = ("bias",)

    def __init__(self, parts: int, width: int) -> None:
        super().__init__()
        size = width // parts
        self.weight = nn.Parameter(torch.empty(parts, size, size).normal_(0, size**-0.5))
        self.bias = nn.Parameter(torch.zeros(parts, size))

    def forward(self, x_F: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
        """Multiply each part."""
        x_HC = x_F.unflatten(-1, self.bias.shape)
        return (torch.einsum("...hc,hce->...he", x_HC, self.weight) + self.bias).flatten(-2)
