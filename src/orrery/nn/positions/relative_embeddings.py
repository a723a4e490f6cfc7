"""Relative positions as vectors: one table for all layers, of which every attention makes keys and queries (DeBERTa).

The distance ``i - j`` of a query from a key names a row of the table; rows ``0 ... 2 reach - 1`` stand for distances
from far ahead (negative) to far behind, and row ``reach`` for the token itself.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.positions.scheme import BoundPosition, PositionCall, PositionScheme, PositionSpec
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, Value, spec


@spec
class Rows(Value):
    """A rule from the distance ``i - j`` to a row of a table of ``2 reach``."""

    reach: int

    def of(self, behind: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
        """Return the row of each distance; what lies beyond the table falls on its ends."""
        return (self.shrink(behind) + self.reach).clamp(0, 2 * self.reach - 1)

    @abstractmethod
    def shrink(self, behind: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
        """Return the distances as indices of the table, far ones mapped to nearer ones."""


@spec
class Clipped(Rows):
    """A row a distance: ``delta(i, j) = clip(i - j + k, 0, 2k - 1)`` (He et al. 2021, equation 3, k the reach)."""

    def shrink(self, behind: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
        """Return the distances unchanged."""
        return behind


@spec
class LogBuckets(Rows):
    """A row a distance up to ``m = reach / 2``, then as the logarithm grows up to ``furthest`` (DeBERTa v2).

    Beyond m the distance d becomes ``m + ceil(log(d / m) / log((furthest - 1) / m) * (m - 1))`` with the sign of d.
    Differs from the reference: the logarithm is taken in float64; at a seam float32 may round to the next bucket.
    """

    furthest: int

    def shrink(self, behind: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
        """Keep what is near and take the logarithm of the rest."""
        half = self.reach // 2
        grown = (behind.abs().clamp(min=half).double() / half).log() / math.log((self.furthest - 1) / half)
        far = half + (grown * (half - 1)).ceil().long()
        return torch.where(behind.abs() <= half, behind, behind.sign() * far)


class RelativeEmbeddings(PositionScheme):
    """``norm(P)[row(i - j)]``: a vector for every distance, for attentions that look at content and position apart.

    He et al. 2021, section 3.1; the norm of the table came with v2. The table is bound whole: each attention projects
    it and picks rows of its products, which are far fewer than the pairs (i, j). Shapes: table ``[2 reach, D]``.
    """

    @spec
    class Spec(PositionSpec):
        """The rule of the rows and the norm of the table."""

        rows: Rows
        norm: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "RelativeEmbeddings":
            """Return the scheme for a stream of ``width`` channels."""
            return RelativeEmbeddings(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.rows = spec.rows
        self.table = nn.Embedding(2 * spec.rows.reach, width)
        self.norm = spec.norm.build(width)

    def bind(self, call: PositionCall) -> BoundPosition:
        """Norm the table and name the row of every pair, by mask."""
        query = call.query.positions[:, :, None]
        rows = {mask: self.rows.of(query - key.positions[:, None, :]) for mask, key in call.keys.items()}
        return Related(self.norm(self.table.weight), rows)


@dataclass(frozen=True)
class Related(BoundPosition):
    """The table ``[R, D]`` of one call, and by mask the row of every pair of query and key ``[B, L, S]``."""

    table_RD: Float[Tensor, "R D"]
    rows: Mapping[str, Int[Tensor, "B L S"]]


def related(positions: Mapping[str, BoundPosition], name: str) -> Related:
    """Return the relative embeddings of this name.

    Raises:
        UsageError: the position of this name is of another kind.
    """
    if not isinstance(positions[name], Related):
        raise UsageError(
            f"the position {name!r} has no vectors of distances",
            "disentangled attention needs RelativeEmbeddings on the stack",
        )
    return cast(Related, positions[name])
