"""Keys and values in slots, by depth: what the growing, the static and the sliding store share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.nn.cache.keys_only import KeysOnly
from orrery.nn.cache.row_buffer import Depths, RowBuffer, copied
from orrery.nn.cache.store import Store
from orrery.nn.masks import EMPTY_SLOT


class KeyValueStore(KeysOnly, ABC):
    """Keys and values by depth, in slots; the last slot of the storage is spare, and padding is written there.

    Shapes: keys and values ``[B, K, S, C]`` a depth; positions ``[B, S]``.
    """

    def __init__(self, rows: int, slots: int, device: torch.device | None) -> None:
        self.positions_BS = torch.full((rows, slots + 1), EMPTY_SLOT, dtype=torch.long, device=device)
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self._keys, self._values = RowBuffer(), RowBuffer()

    @property
    def keys(self) -> Depths:
        """The keys of the rows by depth, ``[B, K, S, C]``, the spare slot last."""
        return self._keys.depths

    @property
    def values(self) -> Depths:
        """The values of the rows by depth, ``[B, K, S, E]``, the spare slot last."""
        return self._values.depths

    @property
    def changes(self) -> int:
        """How often the tensors were replaced: as long as it stays the same, they are where they were."""
        return self._keys.changes + self._values.changes

    @abstractmethod
    def _match(self, other: "KeyValueStore") -> None:
        """Bring both storages to one number of slots."""

    def select(self, rows: Sequence[int], rows_N: Int[Tensor, "N"]) -> None:
        """Keep the given rows, in that order; one may come several times (beams)."""
        self.positions_BS = self.positions_BS[rows_N]
        self._keys.select(rows)
        self._values.select(rows)

    def join(self, other: Store) -> None:
        """Append the rows of another store of the same kind."""
        assert isinstance(other, KeyValueStore)
        self._match(other)
        self.positions_BS = torch.cat([self.positions_BS, other.positions_BS])
        self._keys.append(other._keys)
        self._values.append(other._values)

    def forget(self, lengths: Sequence[int], lengths_B: Int[Tensor, "B"]) -> None:
        """Let the slots beyond these lengths hide themselves; they are written again."""
        slots = torch.arange(self.positions_BS.shape[1], device=lengths_B.device)
        self.positions_BS = self.positions_BS.masked_fill(slots >= lengths_B[:, None], EMPTY_SLOT)

    def copy(self, rows: Sequence[int] | None = None) -> "KeyValueStore":
        """Return a store of the given rows that shares no memory with this one: new tokens are written in place."""
        new = copy(self)
        new.positions_BS = copied(self.positions_BS, rows)
        new._keys, new._values = self._keys.copy(rows), self._values.copy(rows)
        return new

    def bytes(self) -> int:
        """Return the bytes of keys and values, the spare slots and the room for rows included."""
        return self._keys.nbytes + self._values.nbytes

    def _scatter(self, buffer: RowBuffer, depth: int, x_BKLC: Tensor, where_BL: Tensor) -> Tensor:
        """Write one depth's new entries into their slots and return the storage."""
        B, K, _, C = x_BKLC.shape
        if depth not in buffer.depths:
            buffer.put(depth, x_BKLC.new_zeros(B, K, self.positions_BS.shape[1], C))
        index_BKLC = where_BL[:, None, :, None].expand_as(x_BKLC)
        return buffer.depths[depth].scatter_(2, index_BKLC, x_BKLC)
