"""Positions on a grid of patches: a trained vector for each, resampled where a picture has another grid."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate

from orrery.nn.positions.learned import check_reach
from orrery.nn.positions.scheme import Added, BoundPosition, Grid, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import Value, spec


@spec
class PatchGrid(Value):
    """``rows`` by ``columns`` patches in the order of reading; ``before`` and ``after`` them tokens without a place."""

    rows: int
    columns: int
    before: int = 1
    after: int = 0

    @property
    def places(self) -> int:
        """Return how many vectors a table of this grid has."""
        return self.before + self.rows * self.columns + self.after

    def resampled(self, table_ND: Float[Tensor, "N D"], grid: Grid | None) -> Float[Tensor, "N2 D"]:
        """Return a table of this grid for another: its patches by bicubic convolution (Keys 1981, with a = -3/4).

        Dosovitskiy et al. 2021, 3.2. The vectors of the tokens around the patches stay as they are.
        """
        if grid is None or grid == (self.rows, self.columns):
            return table_ND
        first_ND, patches_ND, last_ND = table_ND.split([self.before, self.rows * self.columns, self.after])
        square_1DN = patches_ND.T.unflatten(1, (self.rows, self.columns))[None]
        other_1DN = interpolate(square_1DN, size=grid, mode="bicubic", align_corners=False)
        return torch.cat([first_ND, other_1DN[0].flatten(1).T, last_ND])


class GridPositions(PositionScheme):
    """``x_i + P_i`` with a trained table ``P`` of a grid of patches (Dosovitskiy et al. 2021, 3.1 and 3.2).

    A picture of another size is read with the table resampled to its grid; the call says which grid that is.
    Shapes: table ``[before + rows * columns + after, D]``. Differs from the reference, which resamples where a flag of
    the call says so: here the picture's size says it.
    """

    @spec
    class Spec(PositionSpec):
        """The grid that the table was trained on."""

        grid: PatchGrid

        @property
        def limit(self) -> int:
            """Return the length of the table."""
            return self.grid.places

        def build(self, width: int) -> "GridPositions":
            """Return a table for ``width`` channels."""
            return GridPositions(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.grid, self.length = spec.grid, spec.grid.places
        self.table = nn.Embedding(spec.grid.places, width)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Look the rows up.

        Raises:
            UsageError: there are more tokens than the grid of the call has places.
        """
        table_ND = self.grid.resampled(self.table.weight, call.grid)
        check_reach(call, len(table_ND))
        return Added(table_ND[call.query.positions])
