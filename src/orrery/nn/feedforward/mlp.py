"""The feed-forward network of the original Transformer."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.activations import activation
from orrery.nn.context import Context
from orrery.nn.parting import Parted
from orrery.nn.spec import ModuleSpec, spec


class MLP(nn.Module):
    """``down(act(up(x)))``, the same for every position (Vaswani et al. 2017, 3.3; its activation is relu).

    Shapes: ``[B, L, D]`` through ``[B, L, F]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Parted(columns=("up",), rows=("down",))
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels; biases as in the paper, or none."""

        hidden: int
        activation: str = "gelu"
        bias: bool = True

        def build(self, width: int) -> "MLP":
            """Return the feed-forward network."""
            return MLP(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, spec.hidden, bias=spec.bias)
        self.down = nn.Linear(spec.hidden, width, bias=spec.bias)
        self.activation = activation(spec.activation)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Return ``W_down act(W_up x)``."""
        hidden_BLF = ctx.tap(self, "hidden", self.activation(self.up(x_BLD)))
        return self.down(hidden_BLF)
