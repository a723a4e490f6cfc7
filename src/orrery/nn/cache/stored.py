"""Keys and values in slots, by depth: what the growing, the static and the sliding cache share."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Pair, Place, State
from orrery.nn.cache.rows import RowCache
from orrery.nn.masks import EMPTY_SLOT

Store = dict[int, Tensor]


class Stored(RowCache):
    """Keys and values by depth, in slots; the last slot of the storage is spare, and padding is written there.

    Shapes: keys and values ``[B, K, S, C]`` a depth; positions ``[B, S]``; lengths ``[B]``.
    """

    def __init__(self, rows: int, capacity: int, slots: int, device: torch.device | None) -> None:
        self._capacity = capacity
        self.lengths_B = torch.zeros(rows, dtype=torch.long, device=device)
        self.positions_BS = torch.full((rows, slots + 1), EMPTY_SLOT, dtype=torch.long, device=device)
        self.keys: Store = {}
        self.values: Store = {}
        self.memory: dict[int, Pair] = {}

    @property
    def capacity(self) -> int:
        """Return the number of tokens a row may reach."""
        return self._capacity

    @abstractmethod
    def _empty(self) -> "Stored":
        """Return a cache of the same kind without rows."""

    @abstractmethod
    def _pad(self, slots: int) -> None:
        """Append slots to the storage."""

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Project the encoder's output at the first call and keep the result."""
        if depth not in self.memory:
            self.memory[depth] = project()
        return KeysValues(*self.memory[depth])

    def load_state(self, mask: str, place: Place) -> State | None:
        """Refuse: keys and values are kept here.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"the mask {mask!r} keeps keys, not the state of a recurrence", "give the recurrence Past()")

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Refuse as ``load_state`` does.

        Raises:
            UsageError: always.
        """
        self.load_state(mask, place)

    def select(self, rows: Int[Tensor, "N"]) -> "Stored":
        """Return a cache of the given rows, in that order; a row may come several times (beams) or not at all."""
        return self._map(lambda x: x[rows])

    def join(self, other: RowCache) -> "Stored":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the two are of different kinds or capacities.
        """
        self.refuse_other_kind(other)
        assert isinstance(other, Stored)
        have, others = self.positions_BS.shape[1], other.positions_BS.shape[1]
        self._pad(max(0, others - have))
        other._pad(max(0, have - others))
        joined = self._map(lambda x: x)
        joined.lengths_B = torch.cat([self.lengths_B, other.lengths_B])
        joined.positions_BS = torch.cat([self.positions_BS, other.positions_BS])
        joined.keys = {d: torch.cat([x, other.keys[d]]) for d, x in self.keys.items()}
        joined.values = {d: torch.cat([x, other.values[d]]) for d, x in self.values.items()}
        joined.memory = {d: join_memory(x, other.memory[d]) for d, x in self.memory.items()}
        return joined

    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in each row; the slots hide themselves and are written again.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """
        self.refuse_to_forget(lengths_B)
        self.lengths_B = torch.minimum(self.lengths_B, lengths_B)
        slots = torch.arange(self.positions_BS.shape[1], device=lengths_B.device)
        self.positions_BS = self.positions_BS.masked_fill(slots >= self.lengths_B[:, None], EMPTY_SLOT)

    def bytes(self) -> int:
        """Return the bytes allocated for keys and values, the spare slot included."""
        own = sum(x.nbytes for store in (self.keys, self.values) for x in store.values())
        return own + sum(x.nbytes for pair in self.memory.values() for x in pair)

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Stored":
        new = self._empty()
        new.lengths_B, new.positions_BS = change(self.lengths_B), change(self.positions_BS)
        new.keys = {d: change(x) for d, x in self.keys.items()}
        new.values = {d: change(x) for d, x in self.values.items()}
        new.memory = {d: (change(k), change(v)) for d, (k, v) in self.memory.items()}
        return new

    def _scatter(self, store: Store, depth: int, x_BKLC: Tensor, where_BL: Tensor) -> Tensor:
        """Write one depth's new entries into their slots and return the storage."""
        B, K, _, C = x_BKLC.shape
        if depth not in store:
            store[depth] = x_BKLC.new_zeros(B, K, self.positions_BS.shape[1], C)
        index_BKLC = where_BL[:, None, :, None].expand_as(x_BKLC)
        return store[depth].scatter_(2, index_BKLC, x_BKLC)

    def _refuse_beyond(self, needed: int) -> None:
        if needed > self._capacity:
            raise UsageError(
                f"a row of {needed} tokens does not fit a cache of {self._capacity}",
                "ask for fewer tokens, or start with a larger capacity",
            )


def join_memory(a: Pair, b: Pair) -> Pair:
    """Append rows of keys and values of another length: the mask of the memory hides the difference."""
    longest = max(a[0].shape[2], b[0].shape[2])
    k, v = (torch.cat([pad(x, (0, 0, 0, longest - x.shape[2])) for x in pair]) for pair in zip(a, b, strict=True))
    return k, v
