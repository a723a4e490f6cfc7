"""Some positions of a trace: its values there, wide enough to be added up."""

from fnmatch import fnmatchcase

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.recorded import RecordedPass


class TraceView:
    """The values of a trace at one position or at all of them, in float32 at least.

    Attributes:
        trace: the trace.
        positions: the positions, counted from the left.
    """

    def __init__(self, trace: RecordedPass, position: int | None) -> None:
        """Look at one position, a negative one from the right, or at all.

        Raises:
            UsageError: there is no such position.
        """
        # A head on every row says nothing of positions; its stream has them.
        embedded = f"{trace.model.stack.path}embedded"
        per_position = trace.logits.dim() > 2 and embedded not in trace
        length = (trace.logits if per_position else needed(trace, embedded)).shape[1]
        if position is not None and not -length <= position < length:
            raise UsageError(f"position {position} of {length}", f"give -{length} to {length - 1}, or None for all")
        first = 0 if position is None else position % length
        self.trace = trace
        self.positions = range(first, length if position is None else first + 1)

    def stream(self, key: str) -> Tensor:
        """Return a value ``[B, L, D]`` at the positions: ``[B, P, D]``."""
        return wide(self.take(needed(self.trace, key), 1))

    def heads(self, key: str) -> Tensor:
        """Return a value ``[B, H, L, C]`` at the positions: ``[B, H, P, C]``."""
        return wide(self.take(needed(self.trace, key), 2))

    def take(self, x: Tensor, axis: int = 1) -> Tensor:
        """Return what stands at the positions of an axis."""
        return x.narrow(axis, self.positions.start, len(self.positions))

    def edited(self, key: str) -> bool:
        """Say whether an edit of the run reaches a key."""
        return any(fnmatchcase(key, pattern) for pattern in self.trace.call.edit)


def needed(trace: RecordedPass, key: str) -> Tensor:
    """Return a value that an analysis cannot do without.

    Raises:
        UsageError: the trace has not kept it.
    """
    if key not in trace.values:
        raise UsageError(f"this needs {key!r}, which the trace has not kept", f"trace with keep=[..., {key!r}]")
    return trace.values[key]


def wide(x: Tensor) -> Tensor:
    """Return numbers in float32 at least, without a gradient."""
    return x.detach().to(torch.promote_types(x.dtype, torch.float32))
