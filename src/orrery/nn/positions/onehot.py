"""One-hot positions, concatenated: the course's first way to tell a network where a word stands."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class OneHotPositions(PositionScheme):
    """``[x_i ; e_i]``: the embedding followed by the unit vector of its position.

    Shapes: ``[B, L, D - length]`` to ``[B, L, D]``: the embeddings are built narrower, the stream keeps its width.
    """

    @spec
    class Spec(PositionSpec):
        """``length`` positions, one channel each."""

        length: int

        @property
        def extra_width(self) -> int:
            """Return one channel a position."""
            return self.length

        @property
        def limit(self) -> int:
            """Return the number of unit vectors."""
            return self.length

        def build(self, width: int) -> "OneHotPositions":
            """Return the scheme; it has no parameters."""
            return OneHotPositions(self.length)

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def bind(self, call: PositionCall) -> BoundPosition:
        """Make the unit vectors.

        Raises:
            UsageError: a row is longer than the number of positions.
        """
        if call.query.positions.shape[1] > self.length or call.length > self.length:
            raise UsageError(
                f"{max(call.query.positions.shape[1], call.length)} tokens, but there are {self.length} positions",
                f"shorten the text to {self.length} tokens",
            )
        eye = torch.eye(self.length, dtype=call.dtype, device=call.query.positions.device)
        return _Concatenated(eye[call.query.positions])


@dataclass(frozen=True)
class _Concatenated(BoundPosition):
    units_BLR: Tensor

    def embed(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D2"]:
        return torch.cat([x_BLD, self.units_BLR.expand(*x_BLD.shape[:2], -1)], dim=-1)
