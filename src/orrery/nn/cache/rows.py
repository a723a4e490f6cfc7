"""The cache of rows: three stores (keys and values, states, what was made of the source) and each row's length."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Cache, Pair, Place, State
from orrery.nn.cache.store import Reservation, Store
from orrery.nn.masks import EMPTY_SLOT, TokenPositions

EVERY_MASK = ""
"""The name under which a store serves all masks that have none of their own."""


class RowCache(Cache):
    """The cache of rows that grow; a ``DecodingSession`` owns it, and every operation here is in place.

    Layers that look back a window keep a window, recurrences a state, the others all keys and values: a store by the
    name of the mask. What attention makes of the encoder's output is projected once and kept by depth.

    Lengths are known twice: ``lengths`` on the host, by which slots are allocated and refusals decided, so that no
    step waits for the device; ``lengths_B`` on the device, from which positions are computed.
    """

    def __init__(
        self, rows: int, capacity: int, stores: Mapping[str, Store], device: torch.device | None = None
    ) -> None:
        self._capacity = capacity
        self.lengths: tuple[int, ...] = (0,) * rows
        self.lengths_B = torch.zeros(rows, dtype=torch.long, device=device)
        self.stores = dict(stores)
        self.cross: dict[int, KeysValues] = {}

    @property
    def capacity(self) -> int:
        """Return the number of tokens a row may reach."""
        return self._capacity

    @property
    def longest(self) -> int:
        """Return the number of tokens of the longest row."""
        return max(self.lengths, default=0)

    @property
    def kind(self) -> str:
        """Return the kinds of the stores: only two caches of one kind and capacity can be joined."""
        return ", ".join(f"{mask}: {store.kind}" if mask else store.kind for mask, store in self.stores.items())

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Continue each row from its own length."""
        first_B1 = self.lengths_B[:, None]
        return first_B1 if tokens == 1 else first_B1 + torch.arange(tokens, device=device)

    def reserve(
        self,
        places: TokenPositions,
        real_BL: Bool[Tensor, "B L"] | None,
        masks: Iterable[str],
        counts: Sequence[int] | None = None,
    ) -> Mapping[str, TokenPositions]:
        """Reserve slots in every store; padding, on either side, takes none.

        Raises:
            UsageError: a row would pass the capacity; nothing has changed.
        """
        rows, tokens = len(self.lengths), places.positions.shape[1]
        if counts is None:
            counts = [tokens] * rows if real_BL is None else real_BL.sum(1).tolist()
        after = tuple(old + new for old, new in zip(self.lengths, counts, strict=True))
        self._refuse_beyond(max(after, default=0))
        positions_BL = places.positions.expand(rows, tokens)
        if real_BL is None:
            after_B = self.lengths_B + tokens
        else:
            after_B, positions_BL = self.lengths_B + real_BL.sum(1), positions_BL.masked_fill(~real_BL, EMPTY_SLOT)
        call = Reservation(self.lengths, after, after_B, positions_BL, real_BL)
        shown = {name: store.reserve(call) for name, store in self.stores.items()}
        self.lengths, self.lengths_B = after, after_B
        return {mask: shown[self._name(mask)] for mask in masks}

    def store_of(self, mask: str) -> Store:
        """Return the store that serves a mask."""
        return self.stores[self._name(mask)]

    def shows_only_past(self, mask: str) -> bool:
        """Ask the store of this mask."""
        return self.store_of(mask).shows_only_past()

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Extend the store of this mask."""
        return self.stores[self._name(mask)].extend(mask, depth, k_BKLC, v_BKLE)

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Project the encoder's output at the first call and keep the result."""
        if depth not in self.cross:
            self.cross[depth] = KeysValues(*project())
        return self.cross[depth]

    def load_state(self, mask: str, place: Place) -> State | None:
        """Ask the store of this mask."""
        return self.stores[self._name(mask)].load_state(mask, place)

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Tell the store of this mask."""
        self.stores[self._name(mask)].store_state(mask, place, state)

    def select(self, rows: Sequence[int]) -> None:
        """Keep the given rows, in that order; a row may come several times (beams) or not at all."""
        if list(rows) == list(range(len(self.lengths))):
            return
        rows_N = self._keep(rows)
        for store in self.stores.values():
            store.select(rows, rows_N)

    def join(self, other: "RowCache") -> None:
        """Append the rows of another cache, which is used up.

        Raises:
            UsageError: the two are of different kinds or capacities; nothing has changed.
        """
        self.refuse_other_kind(other)
        for mask, store in self.stores.items():
            store.join(other.stores[mask])
        self.lengths += other.lengths
        self.lengths_B = torch.cat([self.lengths_B, other.lengths_B])
        self.cross = {depth: _joined(kv, other.cross[depth]) for depth, kv in self.cross.items()}

    def truncate(self, lengths: Sequence[int]) -> None:
        """Forget what lies beyond ``lengths`` in each row, in every store or in none.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """
        after = self.refuse_to_forget(lengths)
        self.lengths_B = torch.tensor(after, dtype=torch.long).to(self.lengths_B.device, non_blocking=True)
        for store in self.stores.values():
            store.forget(after, self.lengths_B)
        self.lengths = after

    def refuse_other_kind(self, other: "RowCache") -> None:
        """Refuse to join a cache that is not like this one.

        Raises:
            UsageError: it is of another kind or capacity.
        """
        if (self.kind, self.capacity) != (other.kind, other.capacity):
            raise UsageError(
                f"caches cannot be joined: one is {self.kind} and holds {self.capacity} tokens, "
                f"the other {other.kind}, {other.capacity}",
                "start both with one kind and capacity",
            )

    def refuse_to_forget(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return what rows that are cut to ``lengths`` will have, or refuse where that would show what is gone.

        Raises:
            UsageError: a store cannot go back.
        """
        after = tuple(min(old, new) for old, new in zip(self.lengths, lengths, strict=True))
        for store in self.stores.values():
            store.refuse_to_forget(self.lengths, after)
        return after

    def can_take_back(self, tokens: int) -> bool:
        """Return whether so many tokens more could be written into each row and then be forgotten again."""
        later = tuple(length + tokens for length in self.lengths)
        try:
            for store in self.stores.values():
                store.refuse_to_forget(later, self.lengths)
        except UsageError:
            return False
        return True

    def copy(self, rows: Sequence[int] | None = None) -> "RowCache":
        """Return a cache of the same content, or of the given rows of it, into which other tokens can be written.

        What was made of the source is shared: nobody ever writes there.
        """
        new = RowCache(0, self.capacity, {mask: store.copy(rows) for mask, store in self.stores.items()})
        new.lengths, new.lengths_B, new.cross = self.lengths, self.lengths_B, dict(self.cross)
        if rows is not None:
            new._keep(rows)
        return new

    def _keep(self, rows: Sequence[int]) -> Int[Tensor, "N"]:
        """Keep of the lengths and of the source those of the given rows; return their numbers on the device."""
        rows_N = torch.tensor(rows, dtype=torch.long).to(self.lengths_B.device, non_blocking=True)
        self.lengths, self.lengths_B = tuple(self.lengths[row] for row in rows), self.lengths_B[rows_N]
        self.cross = {depth: KeysValues(kv.k_BKSC[rows_N], kv.v_BKSE[rows_N]) for depth, kv in self.cross.items()}
        return rows_N

    def bytes(self) -> int:
        """Return the bytes allocated, the spare slots included."""
        own = sum(store.bytes() for store in self.stores.values())
        return own + sum(kv.k_BKSC.nbytes + kv.v_BKSE.nbytes for kv in self.cross.values())

    def _name(self, mask: str) -> str:
        """Return the name of the store that serves a mask."""
        return mask if mask in self.stores else EVERY_MASK

    def _refuse_beyond(self, needed: int) -> None:
        if needed > self.capacity:
            raise UsageError(
                f"a row of {needed} tokens does not fit a cache of {self.capacity}",
                "ask for fewer tokens, or start with a larger capacity",
            )


def _joined(a: KeysValues, b: KeysValues) -> KeysValues:
    """Append rows of keys and values of another length: the mask of the encoder hides the difference."""
    longest = max(a.k_BKSC.shape[2], b.k_BKSC.shape[2])
    both = ((a.k_BKSC, b.k_BKSC), (a.v_BKSE, b.v_BKSE))
    return KeysValues(*(torch.cat([pad(x, (0, 0, 0, longest - x.shape[2])) for x in pair]) for pair in both))
