"""Relative positions as a learned bias: distances are put into buckets, and every bucket has a number a head (T5)."""

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from orrery.nn.positions.alibi import Biased
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.spec import Value, spec


@spec
class Buckets(Value):
    """A rule from the distance ``j - i`` to the number of a bucket."""

    count: int
    furthest: int

    @abstractmethod
    def of(self, ahead: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """Return the bucket of each distance."""


@spec
class Backward(Buckets):
    """Buckets for decoders: a key ahead of the query falls into the bucket of distance zero."""

    def of(self, ahead: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """Give small distances a bucket each and let the rest grow with the logarithm."""
        return _logarithmic((-ahead).clamp(min=0), self.count, self.furthest)


@spec
class BothWays(Buckets):
    """Buckets for encoders: one half for keys behind the query, the other for keys ahead."""

    def of(self, ahead: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """Divide the buckets by direction."""
        half = self.count // 2
        return half * (ahead > 0) + _logarithmic(ahead.abs(), half, self.furthest)


def _logarithmic(distance: Tensor, count: int, furthest: int) -> Tensor:
    """Return buckets ``0 ... count - 1``: exact up to half of them, then logarithmic up to ``furthest``.

    Differs from the reference: the logarithm is taken in float64; at the seams float32 may round to the next bucket.
    """
    exact = count // 2
    ratio = (distance.clamp(min=1).double() / exact).log() / math.log(furthest / exact)
    grown = exact + (ratio * (count - exact)).long()
    return torch.where(distance < exact, distance, grown.clamp(max=count - 1))


class RelativeBias(PositionScheme):
    """``scores_ij + table[bucket(j - i), h]`` (Raffel et al. 2020, section 2.1), one table for all layers.

    Shapes: table ``[buckets, H]``; bias ``[B, H, L, S]``.
    """

    @spec
    class Spec(PositionSpec):
        """The heads and the rule of the buckets."""

        learns_bias: ClassVar[bool] = True

        heads: int
        buckets: Buckets

        def build(self, width: int) -> "RelativeBias":
            """Return the scheme."""
            return RelativeBias(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.buckets = spec.buckets
        self.table = nn.Embedding(spec.buckets.count, spec.heads)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Look the bias up for every mask's keys."""
        biases = {}
        for mask, key in call.keys.items():
            ahead_BLS = key.positions[:, None, :] - call.query.positions[:, :, None]
            biases[mask] = self.table(self.buckets.of(ahead_BLS)).movedim(-1, 1)
        return Biased(biases)
