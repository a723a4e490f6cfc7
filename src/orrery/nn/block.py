"""A block: named residuals in order."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.context import Context
from orrery.nn.parting import Grain
from orrery.nn.residual import Residual, give_role
from orrery.nn.spec import ModuleSpec, spec


class Block(nn.Module):
    """``x -> residual_n(... residual_1(x))``; usual names are ``attention``, ``cross``, ``feed_forward``.

    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    parting: ClassVar = Grain.TOKEN
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """The residuals by name, in order."""

        residuals: Mapping[str, Residual.Spec]

        def build(self, width: int) -> "Block":
            """Return the block."""
            return Block(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        for name, residual in spec.residuals.items():
            self.add_module(name, residual.build(width))
            give_role(self.get_submodule(name), name)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Run the residuals in order."""
        x_BLD = ctx.tap(self, "resid_pre", x_BLD)
        for residual in self.children():
            x_BLD = residual(x_BLD, ctx)
        return ctx.tap(self, "resid_post", x_BLD)
