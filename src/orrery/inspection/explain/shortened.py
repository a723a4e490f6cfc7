"""The coarser copy of a picture that an attention makes keys and values of."""

from dataclasses import dataclass

from torch import Tensor

from orrery.inspection.explain.formula import Formula, Index, given
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.nn.attention.shortened import ShortenedSource
from orrery.nn.positions.scheme import Grid


@dataclass(frozen=True)
class Shortened(TensorNode):
    """A convolution without overlap and its norm."""

    source: str
    module: ShortenedSource
    grid: Grid

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the coarser picture as a row."""
        return self.module.shortened(numbers[self.source], self.grid)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number as what it is of: a square of patches."""
        by = self.module.by
        return given(f"a norm of what {by} by {by} patches give together", float(self.compute(numbers)[0][index]))
