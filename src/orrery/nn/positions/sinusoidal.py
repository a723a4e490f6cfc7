"""Sinusoidal positions: sines and cosines of the position at fixed frequencies."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.nn.positions.scheme import Added, BoundPosition, PositionCall, PositionScheme, PositionSpec
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
        """The wavelengths run from 2 pi to 2 pi ``base``; ``halves`` puts all sines first, then all cosines.

        ``offset`` is the number of the first position (fairseq counts from the one behind its padding's id).
        """

        base: float = 10_000.0
        halves: bool = False
        offset: int = 0

        def build(self, width: int) -> "SinusoidalPositions":
            """Return the scheme; it has no parameters."""
            return SinusoidalPositions(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.width, self.base, self.offset = width, spec.base, spec.offset
        self.arrange = in_halves if spec.halves else in_pairs

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute the vectors of the call's positions."""
        return Added(sinusoid(call.query.positions + self.offset, self.width, self.base, self.arrange).to(call.dtype))


def sinusoid(
    positions: Int[Tensor, "*B"], width: int, base: float, arrange: Callable[[Tensor, Tensor], Tensor]
) -> Float[Tensor, "*B D"]:
    """Return the vector of every position, in float64."""
    angles = positions[..., None].double() * rates(base, width, positions)
    return arrange(angles.sin(), angles.cos())[..., :width]


def rates(base: float, width: int, like: Tensor) -> Tensor:
    """Return ``base^(-2i/width)`` for every pair ``i``, in float64 on the device of ``like``."""
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=like.device)
    return torch.exp(pairs * (-math.log(base) / width))


def in_pairs(sine: Tensor, cosine: Tensor) -> Tensor:
    """Return sine and cosine in turns."""
    return torch.stack([sine, cosine], dim=-1).flatten(-2)


def in_halves(sine: Tensor, cosine: Tensor) -> Tensor:
    """Return all sines, then all cosines."""
    return torch.cat([sine, cosine], dim=-1)
