"""Attention over a picture of which keys and values see a smaller copy."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.attention.sources import Source, SourceReading
from orrery.nn.context import Context
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.scheme import Grid
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class ShortenedSource(Source):
    """``norm(W * x)``: the same picture, ``by`` times as coarse on each side, by a convolution without overlap.

    Wang et al. 2021 (PVT, 3.3); Xie et al. 2021 (SegFormer, 3.1). With ``by`` squared fewer keys the scores cost that
    much less. Shapes: x ``[B, L, D]`` to ``[B, S, D]``, where S is about ``L / by^2``.
    """

    @spec
    class Spec(ModuleSpec):
        """How many patches of a side become one; what a last, narrower one would hold is left out."""

        by: int

        def build(self, width: int) -> "ShortenedSource":
            """Return the convolution and its norm."""
            return ShortenedSource(self.by, width)

    def __init__(self, by: int, width: int) -> None:
        super().__init__()
        self.by = by
        self.conv = nn.Conv2d(width, width, kernel_size=by, stride=by)
        self.norm = LayerNorm.Spec().build(width)
        self.values = Identity()

    def read(self, x_BLD: Float[Tensor, "B L D"], ctx: Context, mask: str) -> SourceReading:
        """Return the coarser picture, of which nothing is kept."""
        return SourceReading(self.shortened(x_BLD, ctx.grid), ctx.masks[mask], lambda project: KeysValues(*project()))

    def shortened(self, x_BLD: Float[Tensor, "B L D"], grid: Grid | None) -> Float[Tensor, "B S D"]:
        """Return the coarser picture.

        Raises:
            UsageError: the tokens are no picture, or one of fewer patches than make one key.
        """
        if grid is None or min(grid) < self.by:
            raise UsageError(
                f"keys of {self.by} by {self.by} patches in a picture of {grid or 'no'} patches",
                "give a larger picture to a model that reads pictures",
            )
        map_BDNN = x_BLD.mT.unflatten(2, grid)
        return self.norm(self.conv(map_BDNN).flatten(2).mT)
