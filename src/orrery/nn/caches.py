"""The caches: growing, static, sliding, and one that keeps a cache for each mask; rows have lengths of their own."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from orrery.errors import UsageError
from orrery.nn.cache import Cache, Pair
from orrery.nn.masks import UNUSED, Mask, Places

Store = dict[int, Tensor]


class RowCache(Cache):
    """A cache whose rows can be handled: selected, joined, cut."""

    lengths_B: Int[Tensor, "B"]

    @property
    @abstractmethod
    def capacity(self) -> int:
        """The number of tokens a row may reach."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the cache is, in words: only two of one kind and capacity can be joined."""

    @abstractmethod
    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to cut rows to ``lengths_B`` where that would show tokens that are gone.

        Raises:
            UsageError: they are.
        """

    @abstractmethod
    def select(self, rows: Int[Tensor, "N"]) -> "RowCache":
        """Return a cache of the given rows, in that order; a row may come several times (beams) or not at all."""

    @abstractmethod
    def join(self, other: "RowCache") -> "RowCache":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the two are of different kinds or capacities.
        """

    @abstractmethod
    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in each row; the slots hide themselves and are written again.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """

    @abstractmethod
    def bytes(self) -> int:
        """Return the bytes allocated for keys and values, the spare slots included."""

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Continue each row from its own length."""
        return self.lengths_B[:, None] + torch.arange(tokens, device=device)


class Stored(RowCache):
    """Keys and values by depth, in slots; the last slot of the storage is spare, and padding is written there.

    Shapes: keys and values ``[B, K, S, C]`` a depth; positions ``[B, S]``; lengths ``[B]``.
    """

    def __init__(self, rows: int, capacity: int, slots: int, device: torch.device | None) -> None:
        self._capacity = capacity
        self.lengths_B = torch.zeros(rows, dtype=torch.long, device=device)
        self.positions_BS = torch.full((rows, slots + 1), UNUSED, dtype=torch.long, device=device)
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

    def recall(self, depth: int, project: Callable[[], Pair]) -> Pair:
        """Project the encoder's output at the first call and keep the result."""
        if depth not in self.memory:
            self.memory[depth] = project()
        return self.memory[depth]

    def select(self, rows: Int[Tensor, "N"]) -> "Stored":
        """Return a cache of the given rows, in that order; a row may come several times (beams) or not at all."""
        return self._map(lambda x: x[rows])

    def join(self, other: RowCache) -> "Stored":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the two are of different kinds or capacities.
        """
        _refuse_other_kind(self, other)
        assert isinstance(other, Stored)
        have, others = self.positions_BS.shape[1], other.positions_BS.shape[1]
        self._pad(max(0, others - have))
        other._pad(max(0, have - others))
        joined = self._map(lambda x: x)
        joined.lengths_B = torch.cat([self.lengths_B, other.lengths_B])
        joined.positions_BS = torch.cat([self.positions_BS, other.positions_BS])
        joined.keys = {d: torch.cat([x, other.keys[d]]) for d, x in self.keys.items()}
        joined.values = {d: torch.cat([x, other.values[d]]) for d, x in self.values.items()}
        joined.memory = {d: _join_memory(x, other.memory[d]) for d, x in self.memory.items()}
        return joined

    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in each row; the slots hide themselves and are written again.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """
        self.refuse_to_forget(lengths_B)
        self.lengths_B = torch.minimum(self.lengths_B, lengths_B)
        slots = torch.arange(self.positions_BS.shape[1], device=lengths_B.device)
        self.positions_BS = self.positions_BS.masked_fill(slots >= self.lengths_B[:, None], UNUSED)

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


class SlotCache(Stored):
    """Slots ``0, 1, 2, ...`` of each row hold its tokens in order.

    The growing kind allocates as it goes and shows the filled part; the static kind (``static=True``) allocates
    ``capacity`` slots once and always shows all of them, so that a compiled step sees one shape for ever.
    """

    def __init__(self, rows: int, capacity: int, *, device: torch.device | None = None, static: bool = False):
        super().__init__(rows, capacity, capacity if static else min(capacity, 63), device)
        self.static = static
        self.shown = 0
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.start: int | None = None

    @property
    def kind(self) -> str:
        """Return growing or static."""
        return "static" if self.static else "growing"

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse nothing: every token is still there."""

    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]) -> Mapping[str, Places]:
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
        return dict.fromkeys(masks, Places(self.positions_BS[:, : self.shown]))

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> Pair:
        """Write into the reserved slots and return the shown part."""
        return self._write(self.keys, depth, k_BKLC), self._write(self.values, depth, v_BKLE)

    def _write(self, store: Store, depth: int, x_BKLC: Tensor) -> Tensor:
        if self.start is None or depth not in store:
            self._scatter(store, depth, x_BKLC, self.where_BL)
        else:  # all rows are equally long: a plain copy, several times faster than a scatter
            store[depth][:, :, self.start : self.start + x_BKLC.shape[2]] = x_BKLC
        return store[depth][:, :, : self.shown]

    def _fit(self, needed: int) -> None:
        """Show ``needed`` slots, all where they are static, doubling the storage where it is too small."""
        self._refuse_beyond(needed)
        have = self.positions_BS.shape[1]
        self.shown = self._capacity if self.static else needed
        if needed + 1 > have:
            self._pad(min(self._capacity + 1, max(needed + 1, 2 * have)) - have)

    def _pad(self, slots: int) -> None:
        self.positions_BS = pad(self.positions_BS, (0, slots), value=UNUSED)
        self.keys = {d: pad(x, (0, 0, 0, slots)) for d, x in self.keys.items()}
        self.values = {d: pad(x, (0, 0, 0, slots)) for d, x in self.values.items()}

    def _empty(self) -> "SlotCache":
        return SlotCache(0, self._capacity, device=self.lengths_B.device, static=self.static)


class SlidingCache(Stored):
    """The last ``window`` tokens of each row: token n stands in slot ``n mod window``, where an older one stood.

    A call sees the old slots and, after them, its own tokens, so that a step may be of any length.
    """

    def __init__(self, rows: int, capacity: int, window: int, *, device: torch.device | None = None):
        super().__init__(rows, capacity, min(window, capacity), device)
        self.window = window
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)

    @property
    def kind(self) -> str:
        """Return the window."""
        return f"sliding ({self.window})"

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to cut a row whose older tokens have been overwritten.

        Raises:
            UsageError: a row that is longer than the window would get shorter.
        """
        slots = self.positions_BS.shape[1] - 1
        if bool(((lengths_B < self.lengths_B) & (self.lengths_B > slots)).any()):
            raise UsageError(
                f"a sliding cache of {slots} tokens cannot go back: older tokens have been overwritten",
                "start again from the shorter text, or use a growing cache",
            )

    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]) -> Mapping[str, Places]:
        """Show the old slots and the new tokens; give the last tokens of each row their slots.

        Raises:
            UsageError: a row would pass the capacity.
        """
        slots = self.positions_BS.shape[1] - 1
        if real_BL is None:
            real_BL = torch.ones_like(places.positions, dtype=torch.bool).expand(len(self.lengths_B), -1)
        numbers_BL = self.lengths_B[:, None] + real_BL.cumsum(1) - 1
        after_B = self.lengths_B + real_BL.sum(1)
        self._refuse_beyond(int(after_B.max()))
        self.lengths_B = after_B
        positions_BL = places.positions.expand_as(real_BL).masked_fill(~real_BL, UNUSED)
        shown_BS = torch.cat([self.positions_BS[:, :slots], positions_BL], dim=1)
        kept_BL = real_BL & (numbers_BL >= self.lengths_B[:, None] - slots)
        self.where_BL = (numbers_BL % slots).masked_fill(~kept_BL, slots)
        self.positions_BS = self.positions_BS.scatter(1, self.where_BL, positions_BL.masked_fill(~kept_BL, UNUSED))
        return dict.fromkeys(masks, Places(shown_BS))

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> Pair:
        """Return the old slots and the new tokens, then let the new ones take their slots."""
        return self._slide(self.keys, depth, k_BKLC), self._slide(self.values, depth, v_BKLE)

    def _slide(self, store: Store, depth: int, x_BKLC: Tensor) -> Tensor:
        B, K, _, C = x_BKLC.shape
        slots = self.positions_BS.shape[1] - 1
        old_BKSC = store[depth][:, :, :slots] if depth in store else x_BKLC.new_zeros(B, K, slots, C)
        shown_BKSC = torch.cat([old_BKSC, x_BKLC], dim=2)
        self._scatter(store, depth, x_BKLC, self.where_BL)
        return shown_BKSC

    def _pad(self, slots: int) -> None:
        assert slots == 0, "sliding caches of one window and capacity have one number of slots"

    def _empty(self) -> "SlidingCache":
        return SlidingCache(0, self._capacity, self.window, device=self.lengths_B.device)


class CacheByMask(RowCache):
    """A cache for each mask of a stack: layers that look back a window keep a window, the others keep all."""

    def __init__(self, caches: Mapping[str, Stored]) -> None:
        self.caches = dict(caches)

    @property
    def capacity(self) -> int:
        """Return the number of tokens a row may reach."""
        return self._first.capacity

    @property
    def lengths_B(self) -> Int[Tensor, "B"]:  # type: ignore[override]  # noqa: N802
        """Return how many tokens each row has taken."""
        return self._first.lengths_B

    @property
    def kind(self) -> str:
        """Return the kind of every mask's cache."""
        return ", ".join(f"{mask}: {cache.kind}" for mask, cache in self.caches.items())

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse where one of the caches does.

        Raises:
            UsageError: tokens that would be seen again are gone.
        """
        for cache in self.caches.values():
            cache.refuse_to_forget(lengths_B)

    @property
    def _first(self) -> Stored:
        return next(iter(self.caches.values()))

    def open(self, places: Places, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]) -> Mapping[str, Places]:
        """Open every cache."""
        return {mask: cache.open(places, real_BL, [mask])[mask] for mask, cache in self.caches.items()}

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> Pair:
        """Extend the cache of this mask."""
        return self.caches[mask].extend(mask, depth, k_BKLC, v_BKLE)

    def recall(self, depth: int, project: Callable[[], Pair]) -> Pair:
        """Keep the encoder's output in the first cache."""
        return self._first.recall(depth, project)

    def select(self, rows: Int[Tensor, "N"]) -> "CacheByMask":
        """Return a cache of the given rows."""
        return CacheByMask({mask: cache.select(rows) for mask, cache in self.caches.items()})

    def join(self, other: RowCache) -> "CacheByMask":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the other is of another kind.
        """
        _refuse_other_kind(self, other)
        assert isinstance(other, CacheByMask)
        return CacheByMask({mask: cache.join(other.caches[mask]) for mask, cache in self.caches.items()})

    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in every cache, or in none.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """
        self.refuse_to_forget(lengths_B)
        for cache in self.caches.values():
            cache.truncate(lengths_B)

    def bytes(self) -> int:
        """Return the bytes of all caches."""
        return sum(cache.bytes() for cache in self.caches.values())


def growing(rows: int, capacity: int, device: torch.device | None = None) -> SlotCache:
    """Return a cache that allocates as rows grow, up to ``capacity`` tokens a row."""
    return SlotCache(rows, capacity, device=device)


def static(rows: int, capacity: int, device: torch.device | None = None) -> SlotCache:
    """Return a cache of ``capacity`` slots from the start: one shape for a compiled step."""
    return SlotCache(rows, capacity, device=device, static=True)


def fitting(masks: Mapping[str, Mask], rows: int, capacity: int, device: torch.device | None = None) -> RowCache:
    """Return the smallest cache for a stack with these masks: a window of slots where a mask looks back no further.

    A window that the capacity does not pass needs no sliding: such a cache grows, and can be cut anywhere.
    """
    windows = {name: mask.window for name, mask in masks.items() if mask.window and mask.window < capacity}
    if not windows:
        return growing(rows, capacity, device)
    return CacheByMask(
        {
            name: SlidingCache(rows, capacity, windows[name], device=device)
            if name in windows
            else growing(rows, capacity, device)
            for name in masks
        }
    )


def _refuse_other_kind(a: RowCache, b: RowCache) -> None:
    if (a.kind, a.capacity) != (b.kind, b.capacity):
        raise UsageError(
            f"caches cannot be joined: one is {a.kind} and holds {a.capacity} tokens, the other {b.kind}, {b.capacity}",
            "start both with one kind and capacity",
        )


def _join_memory(a: Pair, b: Pair) -> Pair:
    """Append rows of keys and values of another length; the mask of the memory hides the difference."""
    longest = max(a[0].shape[2], b[0].shape[2])
    k, v = (torch.cat([pad(x, (0, 0, 0, longest - x.shape[2])) for x in pair]) for pair in zip(a, b, strict=True))
    return k, v
