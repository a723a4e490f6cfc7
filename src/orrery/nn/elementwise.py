"""What fills a slot beside norms: a projection, an activation, soft and hard caps, a shift, a factor a channel."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.activations import activation
from orrery.nn.parting import Grain
from orrery.nn.spec import ModuleSpec, spec


class Projection(nn.Module):
    """``W x + b``, to another width: factorised embeddings (ALBERT), poolers, the transform of a head.

    Shapes: ``[..., D]`` to ``[..., E]``.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """The width that comes out."""

        width: int
        bias: bool = True

        def build(self, width: int) -> "Projection":
            """Return the projection."""
            return Projection(width, self.width, bias=self.bias)

        def out_width(self, width: int) -> int:
            """Return the projection's own width."""
            return self.width

    def __init__(self, width: int, out: int, *, bias: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(width, out, bias=bias)

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B E"]:
        """Return ``W x + b``."""
        return self.linear(x_BLD)


class Activation(nn.Module):
    """``act(x)``: an activation as a part of a chain. Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The activation's name."""

        activation: str

        def build(self, width: int) -> "Activation":
            """Return the activation."""
            return Activation(self.activation)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.activation = activation(name)

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation of each number."""
        return self.activation(x)


class SoftCap(nn.Module):
    """``cap * tanh(x / cap)``: nothing passes ``cap`` (Gemma 2, section 2). Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The bound."""

        cap: float

        def build(self, width: int) -> "SoftCap":
            """Return the cap."""
            return SoftCap(self.cap)

    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = cap

    def forward(self, x: Tensor) -> Tensor:
        """Return ``c tanh(x / c)``."""
        return self.cap * torch.tanh(x / self.cap)


class Clamp(nn.Module):
    """``min(max(x, -bound), bound)``: no outliers among queries, keys and values (MPT, OLMo). Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """The bound."""

        bound: float

        def build(self, width: int) -> "Clamp":
            """Return the clamp."""
            return Clamp(self.bound)

    def __init__(self, bound: float) -> None:
        super().__init__()
        self.bound = bound

    def forward(self, x: Tensor) -> Tensor:
        """Return the clamped numbers."""
        return x.clamp(-self.bound, self.bound)


class FixedBias(nn.Module):
    """``x + b``, where ``b`` comes with a file and is not trained (the logits of BART and Marian).

    Shapes: ``[..., D]`` unchanged; ``b`` is ``[D]``, zero in a new model.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "FixedBias":
            """Return a shift of zero."""
            return FixedBias(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width), requires_grad=False)

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Return the vectors with the bias added."""
        return x_BLD + self.shift


class LayerScale(nn.Module):
    """``g * x``, channel by channel, with a learned ``g``: how much of a branch is added (Touvron et al. 2021, CaiT).

    It fills the slot behind a branch. Shapes: ``[B, L, D]`` unchanged; ``g`` is ``[D]``.
    """

    parting: ClassVar = Grain.TOKEN

    @spec
    class Spec(ModuleSpec):
        """What every factor is in a new model."""

        initial: float

        def build(self, width: int) -> "LayerScale":
            """Return the factors."""
            return LayerScale(self.initial, width)

    def __init__(self, initial: float, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((width,), float(initial)))

    def forward(self, x_BLD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Return the vectors, each channel times its factor."""
        return x_BLD * self.gain
