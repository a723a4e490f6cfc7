"""Learned positions: one trained vector for each."""

from torch import nn

from orrery.errors import UsageError
from orrery.nn.positions.scheme import Added, BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class LearnedPositions(PositionScheme):
    """``x_i + P_{i + offset}``, with a trained table ``P`` (Gehring et al. 2017; GPT, BERT).

    Shapes: table ``[length + offset, D]``. Differs from a sinusoid: it ends, so longer rows are refused.
    """

    @spec
    class Spec(PositionSpec):
        """``length`` positions; ``offset`` leading rows that no position uses (OPT, BART)."""

        length: int
        offset: int = 0

        @property
        def limit(self) -> int:
            """Return the length of the table."""
            return self.length

        def build(self, width: int) -> "LearnedPositions":
            """Return a table for ``width`` channels."""
            return LearnedPositions(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.offset, self.length = spec.offset, spec.length
        self.table = nn.Embedding(spec.length + spec.offset, width)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Look the rows up.

        Raises:
            UsageError: a row is longer than the table.
        """
        check_reach(call, self.length)
        return Added(self.table(call.query.positions + self.offset))


def check_reach(call: PositionCall, length: int) -> None:
    """Refuse a call that passes the end of a table.

    Raises:
        UsageError: a row is longer than the table.
    """
    if call.length > length:
        raise UsageError(
            f"{call.length} tokens, but this model has {length} positions",
            f"shorten the text to {length} tokens, or cut it from the left",
        )
