"""Rotary positions: queries and keys are rotated, so that their product sees only the distance."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.rehearsal import kept
from orrery.nn.spec import Value, spec


@spec
class Scaling(Value):
    """A rule that changes the rates of rotation, so that a model reads further than it was trained."""

    @abstractmethod
    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Return the rate of every pair, float64 ``[width / 2]``, for a call that may reach ``length`` tokens."""

    @property
    def magnitude(self) -> float:
        """Return the factor on cosine and sine (YaRN's attention temperature)."""
        return 1.0


def plain_rates(base: float, width: int) -> Tensor:
    """Return ``base^(-2i/width)``, float64 ``[width / 2]``."""
    return base ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)


@spec
class Unscaled(Scaling):
    """The rates of the paper."""

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Return the plain rates."""
        return plain_rates(base, width)


@spec
class Linear(Scaling):
    """Position interpolation: every rate divided by ``factor`` (Chen et al. 2023)."""

    factor: float

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Return every frequency divided by the factor."""
        return plain_rates(base, width) / self.factor


@spec
class Dynamic(Scaling):
    """NTK-aware scaling: a larger base once the call may pass ``trained`` tokens.

    ``base' = base * (factor * n / trained - factor + 1)^(width / (width - 2))`` with ``n = max(length, trained)``.

    Differs from the reference: n is the capacity that the call was opened with, not the tokens seen so far. So the
    keys in the cache are never rotated at a rate that later changes, and cached equals full.
    """

    factor: float
    trained: int

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Widen the base with the length."""
        reach = max(length, self.trained)
        grown = self.factor * reach / self.trained - (self.factor - 1)
        return plain_rates(base * grown ** (width / (width - 2)), width)


@spec
class Yarn(Scaling):
    """YaRN: fast frequencies stay, slow ones are interpolated, those between are mixed (Peng et al. 2023).

    ``temperature`` is the factor on cosine and sine; ``None`` gives the paper's ``0.1 ln(factor) + 1``.
    """

    factor: float
    trained: int
    fast: float = 32.0
    slow: float = 1.0
    temperature: float | None = None
    truncate: bool = True

    @property
    def magnitude(self) -> float:
        """Return the temperature."""
        if self.temperature is not None:
            return self.temperature
        return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Mix the two sets of rates along a ramp over the pairs."""
        low, high = (self._pair_turning(turns, base, width) for turns in (self.fast, self.slow))
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        pairs = torch.arange(width // 2, dtype=torch.float64)
        # A trained length of few turns puts the upper end below the lower: the ramp then falls, as in the reference.
        interpolated = ((pairs - low) / (high - low or 1e-3)).clamp(0, 1)
        rates = plain_rates(base, width)
        return rates * (1 - interpolated) + rates / self.factor * interpolated

    def _pair_turning(self, turns: float, base: float, width: int) -> float:
        """Return the pair (a real number) that turns so many times within the trained length."""
        return width * math.log(self.trained / (turns * 2 * math.pi)) / (2 * math.log(base))


@spec
class Llama3(Scaling):
    """Llama 3.1: long wavelengths are divided by ``factor``, short ones kept, the middle mixed smoothly."""

    factor: float
    low_frequency: float
    high_frequency: float
    trained: int

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Mix by how many wavelengths fit the trained length."""
        rates = plain_rates(base, width)
        turns = self.trained * rates / (2 * math.pi)
        kept = ((turns - self.low_frequency) / (self.high_frequency - self.low_frequency)).clamp(0, 1)
        return kept * rates + (1 - kept) * rates / self.factor


class Rotary(PositionScheme):
    """RoPE: each pair of channels of q and k turns by ``position * rate`` (Su et al. 2021, section 3.2).

    ``(a, b) -> (a cos - b sin, b cos + a sin)``; a product of q at i and k at j then depends on ``i - j`` alone.
    Angles are computed in float64 and cast. Shapes: q ``[B, H, L, C]``, k ``[B, K, L, C]``, unchanged.
    """

    @spec
    class Spec(PositionSpec):
        """Turn the first ``width`` channels of a head.

        ``interleaved`` pairs neighbours (0, 1), as in the paper; otherwise channel i pairs with i + width/2.
        """

        width: int
        base: float = 10_000.0
        interleaved: bool = False
        scaling: Scaling = Unscaled()

        def build(self, width: int) -> "Rotary":
            """Return the scheme; it has no parameters.

            Raises:
                UsageError: the channels do not pair.
            """
            return Rotary(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        if spec.width % 2:
            raise UsageError(f"{spec.width} channels of a head rotate: an odd number", "they rotate in pairs")
        self.width, self.base, self.scaling = spec.width, spec.base, spec.scaling
        self.rotate_pairs = _rotate_neighbours if spec.interleaved else _rotate_halves

    def rates(self, length: int) -> Tensor:
        """Return the rate of every pair, float64 ``[width / 2]``, for a call that may reach ``length`` tokens."""
        return _rates(self.scaling, self.base, self.width, length)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute cosine and sine of the call's positions, once for all layers."""
        rates = self.rates(call.length).to(call.query.positions.device)
        angles_B1LR = call.query.positions[:, None, :, None].double() * rates
        cosine = (angles_B1LR.cos() * self.scaling.magnitude).to(call.dtype)
        sine = (angles_B1LR.sin() * self.scaling.magnitude).to(call.dtype)
        return _Rotated(cosine, sine, self.width, self.rotate_pairs)


@kept(64)
def _rates(scaling: Scaling, base: float, width: int, length: int) -> Tensor:
    return scaling.rates(base, width, length)


def _rotate_halves(x_BHLC: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    a, b = x_BHLC.chunk(2, dim=-1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)


def _rotate_neighbours(x_BHLC: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    a, b = x_BHLC[..., 0::2], x_BHLC[..., 1::2]
    return torch.stack([a * cosine - b * sine, b * cosine + a * sine], dim=-1).flatten(-2)


@dataclass(frozen=True)
class _Rotated(BoundPosition):
    cosine: Tensor
    sine: Tensor
    width: int
    rotate_pairs: Callable[[Tensor, Tensor, Tensor], Tensor]

    def rotate(self, x_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        # Under autocast q and k are narrower than the tables: rotate in the tables' dtype, go on in their own.
        rotated = self.rotate_pairs(x_BHLC[..., : self.width], self.cosine, self.sine).to(x_BHLC.dtype)
        if self.width == x_BHLC.shape[-1]:
            return rotated
        return torch.cat([rotated, x_BHLC[..., self.width :]], dim=-1)
