"""Sinusoids of rows and columns: the place of a patch as a formula that a file carries."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.positions.grid import PatchGrid
from orrery.nn.positions.learned import check_reach
from orrery.nn.positions.scheme import Added, BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.positions.sinusoidal import in_halves, sinusoid
from orrery.nn.spec import spec


class SinusoidalGrid(PositionScheme):
    """``x_i + [S(column); S(row)]``, ``S`` all sines of ``k w_c`` and then all cosines, ``w_c = base^(-4c/D)``.

    He et al. 2022, appendix A.1, with the column in front as their program has it; tokens around the patches have
    zeros. Not trained, and resampled for other grids as ``GridPositions`` is. Shapes: table ``[places, D]``.
    """

    @spec
    class Spec(PositionSpec):
        """The grid; ``resampled`` is what it is taken for at other sizes: one row in the decoder of MAE."""

        grid: PatchGrid
        base: float = 10_000.0
        resampled: PatchGrid | None = None

        @property
        def limit(self) -> int:
            """Return the length of the table."""
            return self.grid.places

        def build(self, width: int) -> "SinusoidalGrid":
            """Return a table for ``width`` channels.

            Raises:
                UsageError: the width has no four equal parts: sine and cosine of row and column.
            """
            if width % 4:
                raise UsageError(f"sinusoids of rows and columns in {width} channels", "choose a multiple of four")
            return SinusoidalGrid(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.grid, self.length = spec.resampled or spec.grid, spec.grid.places
        table = sinusoids(spec.grid, width, spec.base)
        self.table = nn.Parameter(table.to(torch.get_default_dtype()), requires_grad=False)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Look the rows up.

        Raises:
            UsageError: there are more tokens than the grid of the call has places.
        """
        table_ND = self.grid.resampled(self.table, call.grid)
        check_reach(call, len(table_ND))
        return Added(table_ND[call.query.positions])


def sinusoids(grid: PatchGrid, width: int, base: float) -> Float[Tensor, "N D"]:
    """Return the vectors of all places of a grid, in float64."""
    row_N, column_N = torch.meshgrid(torch.arange(grid.rows), torch.arange(grid.columns), indexing="ij")
    halves = [sinusoid(place.flatten(), width // 2, base, in_halves) for place in (column_N, row_N)]
    around = [torch.zeros(count, width, dtype=torch.float64) for count in (grid.before, grid.after)]
    return torch.cat([around[0], torch.cat(halves, dim=1), around[1]])
