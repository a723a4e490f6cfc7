"""Rotary positions whose queries grow with the length that a model was trained for."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import spec


class TemperedRotary(PositionScheme):
    """RoPE, and the query at position p multiplied by ``1 + beta ln(1 + floor(p / trained))`` (Llama 4, Ministral 3).

    The longer a text, the more tokens a pattern is spread over; a larger query sharpens it (Nakanishi 2025). Within the
    trained length the factor is one. Shapes: q ``[B, H, L, C]``, k ``[B, K, L, C]``, unchanged.
    """

    @spec
    class Spec(PositionSpec):
        """The rotation, how fast queries grow, and the length of which each further one lets them grow."""

        rotary: Rotary.Spec
        beta: float
        trained: int

        def build(self, width: int) -> "TemperedRotary":
            """Return the scheme; it has no parameters."""
            return TemperedRotary(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.rotary, self.beta, self.trained = spec.rotary.build(width), spec.beta, spec.trained

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute the rotation and the factors of the call's positions, once for all layers."""
        passed_B1L1 = (call.query.positions[:, None, :, None] // self.trained).double()
        factor_B1L1 = (1 + self.beta * passed_B1L1.log1p()).to(call.dtype)
        return _Tempered(self.rotary.bind(call), factor_B1L1)


@dataclass(frozen=True)
class _Tempered(BoundPosition):
    rotation: BoundPosition
    factor_B1L1: Tensor

    def rotate(self, x_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        return self.rotation.rotate(x_BHLC)

    @property
    def of_queries(self) -> BoundPosition:
        return _TemperedQueries(self.rotation, self.factor_B1L1)


@dataclass(frozen=True)
class _TemperedQueries(BoundPosition):
    rotation: BoundPosition
    factor_B1L1: Tensor

    def rotate(self, x_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        return (self.rotation.rotate(x_BHLC) * self.factor_B1L1).to(x_BHLC.dtype)
