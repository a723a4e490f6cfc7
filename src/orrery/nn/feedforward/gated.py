"""The gated feed-forward network (GLU variants)."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.activations import activation
from orrery.nn.context import Context
from orrery.nn.parting import Parted
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class GatedMLP(nn.Module):
    """``down(act(before(gate(x))) * up(x))`` (Shazeer 2020); with silu it is SwiGLU, with gelu GEGLU.

    The slot before the activation is empty but in Falcon-H1, which has a multiplier there.
    Shapes: ``[B, L, D]`` through twice ``[B, L, F]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Parted(columns=("gate", "up"), rows=("down",))
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels on either side of the gate; ``before`` is a slot before the activation."""

        hidden: int
        activation: str = "silu"
        bias: bool = False
        before: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "GatedMLP":
            """Return the feed-forward network."""
            return GatedMLP(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, spec.hidden, bias=spec.bias)
        self.up = nn.Linear(width, spec.hidden, bias=spec.bias)
        self.down = nn.Linear(spec.hidden, width, bias=spec.bias)
        self.activation, self.before = activation(spec.activation), spec.before.build(spec.hidden)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Let the gate decide what passes."""
        gate_BLF = ctx.tap(self, "gate", self.activation(self.before(self.gate(x_BLD))))
        hidden_BLF = ctx.tap(self, "hidden", gate_BLF * self.up(x_BLD))
        return self.down(hidden_BLF)
