"""What Transformer-XL adds to the terms of disentangled attention: biases that every query brings along."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.spec import ModuleSpec, spec


class HeadBias(nn.Module):
    """``q + v_h``, one vector a head: before queries meet positions (Dai et al. 2019, section 3.3, term d).

    Shapes: ``[B, H, L, C]`` unchanged.
    """

    @spec
    class Spec(ModuleSpec):
        """The heads."""

        heads: int
        head_width: int

        def build(self, width: int) -> "HeadBias":
            """Return the bias, zero."""
            return HeadBias(self)

    no_decay: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(spec.heads, spec.head_width))

    def forward(self, q_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        """Return the queries with the bias added."""
        return q_BHLC + self.weight[:, None]


class ContentBias(nn.Module):
    """``u_h . k_j``: what every query looks for, whatever it is (Dai et al. 2019, section 3.3, term c).

    Shapes: k ``[B, H, S, C]`` to ``[B, H, 1, S]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The heads."""

        heads: int
        head_width: int

        def build(self, width: int) -> "ContentBias":
            """Return the bias, zero."""
            return ContentBias(self)

    no_decay: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(spec.heads, spec.head_width))

    def forward(
        self,
        attention: nn.Module,
        q_BHLC: Float[Tensor, "B H L C"],
        k_BHSC: Float[Tensor, "B H S C"],
        table_RD: Float[Tensor, "R D"],
        rows_BLS: Int[Tensor, "#B L S"],
    ) -> Float[Tensor, "B H 1 S"]:
        """Score every key."""
        return self.weight[:, None] @ k_BHSC.mT
