"""LongRoPE: rotary positions whose every pair of channels has a factor of its own, found by search for a length."""

import torch
from torch import Tensor

from orrery.nn.positions.rotary import Scaling, plain_rates
from orrery.nn.spec import spec


@spec
class LongRope(Scaling):
    """``rate_i' = rate_i / factor_i``: ``short`` factors up to ``trained`` tokens, ``long`` beyond (Ding et al. 2024).

    ``temperature`` is the factor on cosine and sine, at either length.

    Differs from the reference: the length is the capacity that a cached call was opened with, not the tokens seen so
    far. So the keys in a cache are never rotated by other factors than their queries, and cached equals full; the
    reference computes its cache again when a text passes the trained length.
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    trained: int
    temperature: float = 1.0

    @property
    def magnitude(self) -> float:
        """Return the temperature."""
        return self.temperature

    def rates(self, base: float, width: int, length: int) -> Tensor:
        """Divide each rate by its factor for this length."""
        factors = self.long if length > self.trained else self.short
        return plain_rates(base, width) / torch.tensor(factors, dtype=torch.float64)
