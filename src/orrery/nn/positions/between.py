"""Positions that are added between blocks, not only before the first."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.context import Context
from orrery.nn.positions.grid import PatchGrid
from orrery.nn.spec import ModuleSpec, spec


class PositionsBetween(nn.Module):
    """``P``, whatever the stream is: the branch of a residual, which then gives ``x + P`` (Fang et al. 2021, YOLOS).

    The table is resampled to the grid of the call as ``GridPositions`` does it. Shapes: ``[B, L, D]`` unchanged.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """The grid that the table was trained on."""

        grid: PatchGrid

        def build(self, width: int) -> "PositionsBetween":
            """Return a table for ``width`` channels."""
            return PositionsBetween(self.grid, width)

    def __init__(self, grid: PatchGrid, width: int) -> None:
        super().__init__()
        self.grid = grid
        self.table = nn.Embedding(grid.places, width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Return the vectors of all places.

        Raises:
            UsageError: the row is not a picture of the grid that the call names.
        """
        table_LD = self.grid.resampled(self.table.weight, ctx.grid)
        if len(table_LD) != x_BLD.shape[1]:
            raise UsageError(
                f"{x_BLD.shape[1]} tokens, and there are {len(table_LD)} positions between the blocks",
                "give whole pictures, without a tuned prefix before them",
            )
        # A copy: what torch counts operations with takes no view of a parameter.
        return table_LD.expand_as(x_BLD).clone()
