"""ALiBi: no positions at all, but every head looks the less far the steeper its slope."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.nn.positions.scheme import BoundPosition, Call, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class Alibi(PositionScheme):
    """``scores_ij - slope_h * (i - j)``, ``slope_h = 2^(-reach h / H)`` for ``h = 1 ... H`` (Press et al. 2022).

    Where H is no power of two, the slopes of the next lower power come first and then every other one of the next
    higher, as in the authors' code. Shapes: bias ``[B, H, L, S]``.
    """

    @spec
    class Spec(PositionSpec):
        """``reach`` is the exponent of the flattest slope; ``scale`` multiplies every slope (Falcon)."""

        heads: int
        reach: float = 8.0
        scale: float = 1.0

        def build(self, width: int) -> "Alibi":
            """Return the scheme; it has no parameters."""
            return Alibi(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.slopes = [spec.scale * slope for slope in slopes(spec.heads, spec.reach)]

    def bind(self, call: Call) -> BoundPosition:
        """Compute the bias of every mask's keys."""
        slopes_H = torch.tensor(self.slopes, dtype=torch.float64, device=call.query.positions.device)
        biases = {}
        for mask, key in call.keys.items():
            ahead_BLS = key.positions[:, None, :] - call.query.positions[:, :, None]
            biases[mask] = (slopes_H[:, None, None] * ahead_BLS[:, None]).to(call.dtype)
        return Biased(biases)


def slopes(heads: int, reach: float) -> list[float]:
    """Return the slope of every head."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-reach * h / power) for h in range(1, power + 1)]
    between = [2 ** (-reach * h / (2 * power)) for h in range(1, 2 * power + 1, 2)]
    return first + between[: heads - power]


@dataclass(frozen=True)
class Biased(BoundPosition):
    """A scheme that adds a bias to the scores, by mask."""

    biases: dict[str, Tensor]

    def bias(self, mask: str) -> Float[Tensor, "#B H L S"]:
        """Return the bias of the keys that this mask shows."""
        return self.biases[mask]
