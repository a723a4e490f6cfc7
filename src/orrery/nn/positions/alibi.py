"""ALiBi: no positions at all, but every head looks the less far the steeper its slope."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class Alibi(PositionScheme):
    """``scores_ij - slope_h * (i - j)``, ``slope_h = 2^(-8 h / H)`` for ``h = 1 ... H`` (Press et al. 2022).

    Where H is no power of two, the slopes of the next lower power come first and then every other one of the next
    higher, as in the authors' code. Shapes: bias ``[B, H, L, S]``.
    """

    @spec
    class Spec(PositionSpec):
        """The number of heads."""

        heads: int

        def build(self, width: int) -> "Alibi":
            """Return the scheme; it has no parameters."""
            return Alibi(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.slopes = slopes(spec.heads)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute the bias of every mask's keys."""
        slopes_H = torch.tensor(self.slopes, dtype=torch.float64, device=call.query.positions.device)
        biases = {}
        for mask, key in call.keys.items():
            ahead_BLS = key.positions[:, None, :] - call.query.positions[:, :, None]
            biases[mask] = (slopes_H[:, None, None] * ahead_BLS[:, None]).to(call.dtype)
        return Biased(biases)


class RoundedAlibi(PositionScheme):
    """``scores_ij + scale * round(round(slope_h) * round(j))``: ALiBi as Falcon computes it, rounded to bfloat16.

    Differs from the paper: the three roundings move a score by up to ``3 * 2^-9`` of ``scale slope_h j``, and the
    scores depend on where a key stands, not on the distance alone. Shapes: bias ``[B, H, L, S]``.
    """

    @spec
    class Spec(PositionSpec):
        """``scale`` multiplies every bias: Falcon scales the scores together with it."""

        heads: int
        scale: float = 1.0

        def build(self, width: int) -> "RoundedAlibi":
            """Return the scheme; it has no parameters."""
            return RoundedAlibi(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.slopes, self.scale = slopes(spec.heads), spec.scale

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute the bias of every mask's keys, the same for all queries."""
        slopes_H = torch.tensor(self.slopes, dtype=torch.bfloat16, device=call.query.positions.device)
        biases = {}
        for mask, key in call.keys.items():
            rounded_BHS = slopes_H[:, None] * key.positions[:, None, :].bfloat16()
            bias_BHS = self.scale * rounded_BHS.to(call.dtype)
            biases[mask] = bias_BHS[:, :, None].expand(-1, -1, call.query.positions.shape[1], -1)
        return Biased(biases)


def slopes(heads: int) -> list[float]:
    """Return the slope of every head."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2 ** (-8 * h / (2 * power)) for h in range(1, 2 * power + 1, 2)]
    return first + between[: heads - power]


@dataclass(frozen=True)
class Biased(BoundPosition):
    """A scheme that adds a bias to the scores, by mask."""

    biases: dict[str, Tensor]

    def bias(self, mask: str) -> Float[Tensor, "#B H L S"]:
        """Return the bias of the keys that this mask shows."""
        return self.biases[mask]
