"""Relative positions as fixed vectors: a sinusoid for every distance behind the query (Transformer-XL, Gopher)."""

import torch

from orrery.nn.positions.relative_embeddings import Related
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.positions.sinusoidal import rates
from orrery.nn.spec import spec


class RelativeSinusoids(PositionScheme):
    """``R_d = [sin(d w_0), ..., cos(d w_0), ...]`` for ``d = i - j >= 0`` (Dai et al. 2019, section 3.3).

    A key ahead of its query gets the vector of distance zero: causal masks hide it. Angles are computed in float64 and
    then cast. Shapes: table ``[length, D]``; there is nothing to train and no end.
    """

    @spec
    class Spec(PositionSpec):
        """The wavelengths run from 2 pi to 2 pi ``base``."""

        base: float = 10_000.0

        def build(self, width: int) -> "RelativeSinusoids":
            """Return the scheme; it has no parameters."""
            return RelativeSinusoids(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.width, self.base = width, spec.base

    def bind(self, call: PositionCall) -> BoundPosition:
        """Compute the vectors of all distances that can occur, and name the one of every pair, by mask."""
        query = call.query.positions
        length = call.length
        distances = torch.arange(length, dtype=torch.float64, device=query.device)
        angles = distances[:, None] * rates(self.base, self.width, query)
        table_RD = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, : self.width].to(call.dtype)
        behind = {mask: query[:, :, None] - key.positions[:, None, :] for mask, key in call.keys.items()}
        return Related(table_RD, {mask: distance.clamp(0, length - 1) for mask, distance in behind.items()})
