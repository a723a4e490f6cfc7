"""A feed-forward network in which each patch sees its neighbours: how SegFormer knows where patches stand."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.context import Context
from orrery.nn.residual import Dropout
from orrery.nn.spec import ModuleSpec, spec


class MixMLP(nn.Module):
    """``down(act(depthwise(up(x))))`` with a convolution of three by three for each channel (Xie et al. 2021, 3.1).

    Beyond the border of the picture are zeros, from which patches can learn where they stand; there are no other
    positions. Shapes: ``[B, L, D]`` through ``[B, L, F]`` to ``[B, L, D]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels, and the dropout behind the activation."""

        hidden: int
        activation: str = "gelu"
        dropout: float = 0.0

        def build(self, width: int) -> "MixMLP":
            """Return the network."""
            return MixMLP(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, spec.hidden)
        self.neighbours = nn.Conv2d(spec.hidden, spec.hidden, kernel_size=3, padding=1, groups=spec.hidden)
        self.down = nn.Linear(spec.hidden, width)
        self.activation = activation(spec.activation)
        self.dropout = Dropout.Spec(rate=spec.dropout).build(spec.hidden)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Mix each channel with its neighbours between the two matrices.

        Raises:
            UsageError: the tokens are no picture.
        """
        if ctx.grid is None:
            raise UsageError("tokens of no picture have no neighbours above and below", "use it in a model of pictures")
        map_BFNN = self.up(x_BLD).mT.unflatten(2, ctx.grid)
        mixed_BLF = self.neighbours(map_BFNN).flatten(2).mT
        hidden_BLF = ctx.tap(self, "hidden", self.activation(mixed_BLF))
        return self.down(self.dropout(hidden_BLF))
