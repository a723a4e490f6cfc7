"""Sinusoidal positions: a fixed clock of many hands, each turning at its own rate."""

import math

import torch
from torch import Tensor

from orrery.nn.positions.scheme import Added, BoundPosition, Call, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class SinusoidalPositions(PositionScheme):
    """``P(k, 2i) = sin(k w_i)``, ``P(k, 2i+1) = cos(k w_i)``, ``w_i = base^(-2i/D)`` (Vaswani et al. 2017, 3.5).

    A shift is linear: ``P(k + d) = M(d) P(k)``, where ``M(d)`` turns each pair by ``d w_i`` and does not depend on k.

    Differs from the usual code: angles are computed in float64 and then cast, because float32 angles lose about
    ``6e-8 k w``. The course shows base 10,000 in one deck and 100,000 in another.
    Shapes: added to ``[B, L, D]``.
    """

    @spec
    class Spec(PositionSpec):
        """The wavelengths run from 2 pi to 2 pi ``base``; ``halves`` puts all sines first, then all cosines."""

        base: float = 10_000.0
        halves: bool = False

        def build(self, width: int) -> "SinusoidalPositions":
            """Return the scheme; it has no parameters."""
            return SinusoidalPositions(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.width, self.base = width, spec.base
        self.arrange = _halves if spec.halves else _pairs

    def bind(self, call: Call) -> BoundPosition:
        """Compute the angles of the call's positions."""
        angles_BLR = call.query.positions[..., None].double() * rates(self.base, self.width, call.query.positions)
        table_BLD = self.arrange(angles_BLR.sin(), angles_BLR.cos())[..., : self.width]
        return Added(table_BLD.to(call.dtype))


def rates(base: float, width: int, like: Tensor) -> Tensor:
    """Return ``base^(-2i/width)`` for every pair ``i``, in float64 on the device of ``like``."""
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=like.device)
    return torch.exp(pairs * (-math.log(base) / width))


def _pairs(sine: Tensor, cosine: Tensor) -> Tensor:
    return torch.stack([sine, cosine], dim=-1).flatten(-2)


def _halves(sine: Tensor, cosine: Tensor) -> Tensor:
    return torch.cat([sine, cosine], dim=-1)
