"""Caches: the keys and values of earlier calls, with a length of its own for every row.

A cache stores the *position of each key* beside the keys. Masks and biases follow from positions alone, and a slot
that holds nothing hides itself, because its position is ``UNUSED``. The stack opens the cache once a forward; each
attention then extends its own layer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.masks import UNUSED, Places


@dataclass(frozen=True)
class Layer:
    """Who is running: the depth, the path that taps show, and the share of the cache."""

    depth: int
    path: str
    cache: "Cache"

    def extend(
        self, k_BKLC: Float[Tensor, "B K L C"], v_BKLC: Float[Tensor, "B K L C"]
    ) -> tuple[Float[Tensor, "B K S C"], Float[Tensor, "B K S C"]]:
        """Store the new keys and values and return all of this depth, old ones first."""
        return self.cache.extend(self.depth, k_BKLC, v_BKLC)


class Cache(ABC):
    """What a stack asks of its memory of earlier calls."""

    @abstractmethod
    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Return the positions that the next ``tokens`` tokens of each row take."""

    @abstractmethod
    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None) -> Places:
        """Reserve slots for one call and return the places of all keys, the new ones among them."""

    @abstractmethod
    def extend(self, depth: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Write one depth's new keys and values and return all of them."""

    @property
    @abstractmethod
    def capacity(self) -> int | None:
        """The number of tokens a row may reach, where one was named."""


class Uncached(Cache):
    """No memory: the null object of a full forward."""

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Count from zero; one row broadcasts over the batch."""
        return torch.arange(tokens, device=device)[None]

    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None) -> Places:
        """Return the call's own places, with the unreal ones hidden."""
        if real_BL is None:
            return places
        hidden_BL = places.positions.masked_fill(~real_BL, UNUSED)
        return Places(hidden_BL, places.documents, places.prefix)

    def extend(self, depth: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Return what came."""
        return k_BKLC, v_BKLC

    @property
    def capacity(self) -> int | None:
        """Return nothing: a full forward sees exactly its own tokens."""
        return None


UNCACHED = Uncached()


class SlotCache(Cache):
    """Slots ``0, 1, 2, ...`` of each row hold its tokens in order; rows have lengths of their own.

    The growing kind allocates as it goes and shows the filled part; the static kind (``static=True``) allocates
    ``capacity`` slots once and always shows all of them, so that a compiled step sees one shape for ever. The last
    slot of the storage is spare: padding is written there, so that it never takes the room of a token.

    Shapes: keys and values ``[B, K, S, C]`` a depth; positions ``[B, S]``; lengths ``[B]``.
    """

    def __init__(self, rows: int, capacity: int, *, device: torch.device | None = None, static: bool = False):
        self._capacity = capacity
        self.shown = capacity if static else 0
        self.static = static
        slots = capacity + 1 if static else min(capacity + 1, 64)
        self.lengths_B = torch.zeros(rows, dtype=torch.long, device=device)
        self.positions_BS = torch.full((rows, slots), UNUSED, dtype=torch.long, device=device)
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.start: int | None = None
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    @property
    def capacity(self) -> int:
        """Return the number of tokens a row may reach."""
        return self._capacity

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Continue each row from its own length."""
        return self.lengths_B[:, None] + torch.arange(tokens, device=device)

    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None) -> Places:
        """Reserve the slots after each row's last token; padding, on either side, takes none.

        Raises:
            UsageError: a row would pass the capacity.
        """
        before_B, tokens = self.lengths_B, places.positions.shape[1]
        self.where_BL = self.next_positions(tokens, places.positions.device)
        positions_BL = places.positions.expand_as(self.where_BL)
        after_B = before_B + tokens if real_BL is None else before_B + real_BL.sum(1)
        self._fit(int(after_B.max()))
        self.lengths_B = after_B
        if real_BL is None:
            shortest, longest = (int(x) for x in before_B.aminmax())
            self.start = None if self.static or shortest != longest else shortest
        else:
            self.start, spare = None, self.positions_BS.shape[1] - 1
            self.where_BL = (before_B[:, None] + real_BL.cumsum(1) - 1).masked_fill(~real_BL, spare)
            positions_BL = positions_BL.masked_fill(~real_BL, UNUSED)
        self.positions_BS.scatter_(1, self.where_BL, positions_BL)
        return Places(self.positions_BS[:, : self.shown])

    def extend(self, depth: int, k_BKLC: Tensor, v_BKLC: Tensor) -> tuple[Tensor, Tensor]:
        """Write into the reserved slots and return the shown part."""
        return self._write(self.keys, depth, k_BKLC), self._write(self.values, depth, v_BKLC)

    def _write(self, store: dict[int, Tensor], depth: int, x_BKLC: Tensor) -> Tensor:
        B, K, _, C = x_BKLC.shape
        if depth not in store:
            store[depth] = x_BKLC.new_zeros(B, K, self.positions_BS.shape[1], C)
        if self.start is None:
            index_BKLC = self.where_BL[:, None, :, None].expand_as(x_BKLC)
            store[depth].scatter_(2, index_BKLC, x_BKLC)
        else:  # all rows are equally long: a plain copy, several times faster than a scatter
            store[depth][:, :, self.start : self.start + x_BKLC.shape[2]] = x_BKLC
        return store[depth][:, :, : self.shown]

    def _fit(self, needed: int) -> None:
        """Show ``needed`` slots, doubling the storage where it is too small."""
        if needed > self._capacity:
            raise UsageError(
                f"a row of {needed} tokens does not fit a cache of {self._capacity}",
                "ask for fewer tokens, or start with a larger capacity",
            )
        have = self.positions_BS.shape[1]
        self.shown = max(self.shown, needed)
        if needed + 1 > have:
            self._pad(min(self._capacity + 1, max(needed + 1, 2 * have)) - have)

    def _pad(self, slots: int) -> None:
        pad = torch.nn.functional.pad
        self.positions_BS = pad(self.positions_BS, (0, slots), value=UNUSED)
        self.keys = {d: pad(x, (0, 0, 0, slots)) for d, x in self.keys.items()}
        self.values = {d: pad(x, (0, 0, 0, slots)) for d, x in self.values.items()}

    def select(self, rows: Int[Tensor, "N"]) -> "SlotCache":
        """Return a cache of the given rows, in that order; a row may come several times (beams) or not at all."""
        return self._with(
            self.lengths_B[rows],
            self.positions_BS[rows],
            {d: x[rows] for d, x in self.keys.items()},
            {d: x[rows] for d, x in self.values.items()},
        )

    def join(self, other: "SlotCache") -> "SlotCache":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the two were opened with different capacities.
        """
        if (self._capacity, self.static) != (other._capacity, other.static):
            raise UsageError("caches of different capacity cannot be joined", "start both with one capacity")
        have, others = self.positions_BS.shape[1], other.positions_BS.shape[1]
        self._pad(max(0, others - have))
        other._pad(max(0, have - others))
        joined = self._with(
            torch.cat([self.lengths_B, other.lengths_B]),
            torch.cat([self.positions_BS, other.positions_BS]),
            {d: torch.cat([x, other.keys[d]]) for d, x in self.keys.items()},
            {d: torch.cat([x, other.values[d]]) for d, x in self.values.items()},
        )
        joined.shown = max(self.shown, other.shown)
        return joined

    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in each row; the slots hide themselves and are written again."""
        self.lengths_B = torch.minimum(self.lengths_B, lengths_B)
        slots = torch.arange(self.positions_BS.shape[1], device=lengths_B.device)
        self.positions_BS = self.positions_BS.masked_fill(slots >= self.lengths_B[:, None], UNUSED)

    def bytes(self) -> int:
        """Return the bytes allocated for keys and values, the spare slot included."""
        return sum(x.nbytes for store in (self.keys, self.values) for x in store.values())

    def _with(self, lengths: Tensor, positions: Tensor, keys: dict, values: dict) -> "SlotCache":
        new = SlotCache(0, self._capacity, device=lengths.device, static=self.static)
        new.lengths_B, new.positions_BS, new.keys, new.values = lengths, positions, keys, values
        new.shown = self.shown
        return new


def growing(rows: int, capacity: int, device: torch.device | None = None) -> SlotCache:
    """Return a cache that allocates as rows grow, up to ``capacity`` tokens a row."""
    return SlotCache(rows, capacity, device=device)


def static(rows: int, capacity: int, device: torch.device | None = None) -> SlotCache:
    """Return a cache of ``capacity`` slots from the start: one shape for a compiled step."""
    return SlotCache(rows, capacity, device=device, static=True)
