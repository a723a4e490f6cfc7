"""Sinusoidal positions that a file carries: the formula once, then a table that nothing changes."""

import torch
from torch import nn

from orrery.nn.positions.learned import check_reach
from orrery.nn.positions.scheme import Added, BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.positions.sinusoidal import in_halves, sinusoid
from orrery.nn.spec import spec


class SinusoidalTable(PositionScheme):
    """``x_i + P_i``, row i all sines of ``i w_c`` and then all cosines, ``w_c = base^(-2c/D)`` (Pegasus).

    Shapes: table ``[length, D]``, not trained. Differs from ``SinusoidalPositions``: it ends, and its numbers are those
    of the file, rounded as whoever wrote it rounded them.
    """

    @spec
    class Spec(PositionSpec):
        """``length`` positions; the wavelengths run from 2 pi to 2 pi ``base``."""

        length: int
        base: float = 10_000.0

        @property
        def limit(self) -> int:
            """Return the length of the table."""
            return self.length

        def build(self, width: int) -> "SinusoidalTable":
            """Return a table for ``width`` channels."""
            return SinusoidalTable(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.length = spec.length
        table = sinusoid(torch.arange(spec.length), width, spec.base, in_halves)
        self.table = nn.Parameter(table.to(torch.get_default_dtype()), requires_grad=False)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Look the rows up.

        Raises:
            UsageError: a row is longer than the table.
        """
        check_reach(call, self.length)
        return Added(self.table[call.query.positions])
