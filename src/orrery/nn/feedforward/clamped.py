"""The clamped gated network of gpt-oss."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.context import Context
from orrery.nn.parting import Parted
from orrery.nn.spec import ModuleSpec, spec


class ClampedGatedMLP(nn.Module):
    """``down((u + 1) * g * sigmoid(slope g))``, ``g = min(gate x, limit)``, ``u = clip(up x, -limit, limit)``.

    SwiGLU (Shazeer 2020) whose sides cannot grow beyond ``limit``, and whose linear side is one where it is empty
    (gpt-oss model card, OpenAI 2025). Shapes: ``[B, L, D]`` through twice ``[B, L, F]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Parted(columns=("gate", "up"), rows=("down",))
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels on either side of the gate, the bound of both, and the slope of the sigmoid."""

        hidden: int
        limit: float = 7.0
        slope: float = 1.702
        bias: bool = True

        def build(self, width: int) -> "ClampedGatedMLP":
            """Return the feed-forward network."""
            return ClampedGatedMLP(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, spec.hidden, bias=spec.bias)
        self.up = nn.Linear(width, spec.hidden, bias=spec.bias)
        self.down = nn.Linear(spec.hidden, width, bias=spec.bias)
        self.limit, self.slope = spec.limit, spec.slope

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Let the gate decide what passes."""
        gate_BLF, up_BLF = self.gate(x_BLD).clamp(max=self.limit), self.up(x_BLD).clamp(-self.limit, self.limit)
        gate_BLF = ctx.tap(self, "gate", gate_BLF * torch.sigmoid(self.slope * gate_BLF))
        hidden_BLF = ctx.tap(self, "hidden", gate_BLF * (up_BLF + 1))
        return self.down(hidden_BLF)
