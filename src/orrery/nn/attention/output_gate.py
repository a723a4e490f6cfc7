"""A gate between the heads of an attention and its output matrix, which each token sets."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.attention.multihead import MultiHeadAttention, Tap
from orrery.nn.spec import ModuleSpec, spec


class OutputGate(nn.Module):
    """``sigmoid(W x) * z``, channel by channel of every head (Qiu et al. 2025, behind the product with the values).

    Of that paper's gates it is the only one here. Shapes: ``[B, H, L, C]`` unchanged, x ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The attention whose heads it stands behind, and whether its map has a bias."""

        attention: MultiHeadAttention.Spec
        bias: bool = False

        def build(self, width: int) -> MultiHeadAttention:
            """Return the attention with the gate."""
            attention = self.attention.build(width)
            attention.gate = OutputGate(self, width)
            return attention

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.heads = spec.attention.heads
        self.linear = nn.Linear(width, self.heads * spec.attention.head_width, bias=spec.bias)

    def forward(
        self, mixed_BHLC: Float[Tensor, "B H L C"], x_BLD: Float[Tensor, "B L D"], tap: Tap
    ) -> Float[Tensor, "B H L C"]:
        """Let through as much of each channel as its gate says; ``tap`` sees the gates."""
        gate_BHLC = torch.sigmoid(self.linear(x_BLD)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return tap("gate", gate_BHLC) * mixed_BHLC
