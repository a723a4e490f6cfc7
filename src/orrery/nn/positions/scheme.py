"""What a position scheme may do: three hooks, each doing nothing unless the scheme says otherwise."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.masks import EMPTY_SLOT, TokenPositions
from orrery.nn.spec import ModuleSpec, spec

Grid: TypeAlias = tuple[int, int]
"""Rows and columns of the patches of a picture."""


@dataclass(frozen=True)
class PositionCall:
    """What a scheme is bound to: the places of queries and keys, and the length that the call may reach.

    No query stands at ``length`` or beyond, so that a scheme need not ask a device how far they go. ``grid`` is that of
    the patches where pictures are read; ``None`` is the one that the model was made for.
    """

    query: TokenPositions
    keys: Mapping[str, TokenPositions]
    length: int
    dtype: torch.dtype
    grid: Grid | None = None

    def behind(self, places: int) -> "PositionCall":
        """Return the call of the same tokens behind learned keys, which take the first places of every row."""
        if not places:
            return self
        query = TokenPositions(self.query.positions + places)
        keys = {mask: TokenPositions(_behind(key.positions, places)) for mask, key in self.keys.items()}
        return PositionCall(query, keys, self.length + places, self.dtype, self.grid)


def _behind(positions_BS: Int[Tensor, "B S"], places: int) -> Int[Tensor, "B S2"]:
    """Return the positions of learned keys and of those behind them; a slot that is empty stays so."""
    first = torch.arange(places, device=positions_BS.device).expand(len(positions_BS), -1)
    later = torch.where(positions_BS < EMPTY_SLOT, positions_BS + places, positions_BS)
    return torch.cat([first, later], dim=1)


class BoundPosition(ABC):  # noqa: B024 - three hooks, none of which a scheme must have
    """A scheme bound to one call; it overrides exactly the hooks that it uses."""

    def embed(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D2"]:
        """Change the embeddings before the first block."""
        return x_BLD

    def rotate(self, x_BHLC: Float[Tensor, "B H L C"]) -> Float[Tensor, "B H L C"]:
        """Change queries, or keys, before they meet; keys enter the cache changed."""
        return x_BHLC

    @property
    def of_queries(self) -> "BoundPosition":
        """The scheme for queries, where it does something else to them than to keys."""
        return self

    def bias(self, mask: str) -> Float[Tensor, "#B H L S"] | None:
        """Return what is added to the scores of the attentions under the mask of this name."""
        return None


class NoPosition(BoundPosition):
    """No scheme: every hook does nothing."""


NO_POSITION = NoPosition()


@dataclass(frozen=True)
class Added(BoundPosition):
    """A scheme that adds one vector to each embedding."""

    table_BLD: Float[Tensor, "B L D"]

    def embed(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """Return ``x + table``."""
        return x_BLD + self.table_BLD


class PositionScheme(nn.Module, ABC):
    """A scheme: its parameters, and how it binds to a call."""

    @abstractmethod
    def bind(self, call: PositionCall) -> BoundPosition:
        """Return the scheme for the places of one call, with its tables computed once for all layers."""


@spec
class PositionSpec(ModuleSpec):
    """The spec of a scheme."""

    @property
    def extra_width(self) -> int:
        """Channels that the scheme appends to the embeddings; the embeddings are built that much narrower."""
        return 0

    @property
    def limit(self) -> int | None:
        """The number of positions it has, where that is bounded."""
        return None
