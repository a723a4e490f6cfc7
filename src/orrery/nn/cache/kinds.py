"""Every kind of cache: growing, static, sliding, and one that keeps a cache for each mask of a stack."""

from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Pair, Place, State
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.sliding import SlidingCache
from orrery.nn.cache.slots import SlotCache
from orrery.nn.cache.states import StateCache
from orrery.nn.masks import Mask, RecurrentPast, TokenPositions

__all__ = ["CacheByMask", "RowCache", "SlidingCache", "SlotCache", "StateCache", "cache_for", "growing", "static"]


class CacheByMask(RowCache):
    """A cache for each mask of a stack: layers that look back a window keep a window, the others keep all."""

    def __init__(self, caches: Mapping[str, RowCache]) -> None:
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
    def _first(self) -> RowCache:
        return next(iter(self.caches.values()))

    def reserve(
        self, places: TokenPositions, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]
    ) -> Mapping[str, TokenPositions]:
        """Open every cache."""
        return {mask: cache.reserve(places, real_BL, [mask])[mask] for mask, cache in self.caches.items()}

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Extend the cache of this mask."""
        return self.caches[mask].extend(mask, depth, k_BKLC, v_BKLE)

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Keep the encoder's output in the first cache."""
        return self._first.cross_attention_keys(depth, project)

    def load_state(self, mask: str, place: Place) -> State | None:
        """Ask the cache of this mask."""
        return self.caches[mask].load_state(mask, place)

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Tell the cache of this mask."""
        self.caches[mask].store_state(mask, place, state)

    def select(self, rows: Int[Tensor, "N"]) -> "CacheByMask":
        """Return a cache of the given rows."""
        return CacheByMask({mask: cache.select(rows) for mask, cache in self.caches.items()})

    def join(self, other: RowCache) -> "CacheByMask":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the other is of another kind.
        """
        self.refuse_other_kind(other)
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


def cache_for(masks: Mapping[str, Mask], rows: int, capacity: int, device: torch.device | None = None) -> RowCache:
    """Return the smallest cache for a stack with these masks.

    A recurrence leaves a state, and a window that is shorter than the capacity needs no more slots than its length;
    one that is longer never slides, so that its cache grows and can be cut anywhere, as every other.
    """

    def own(mask: Mask) -> RowCache:
        if isinstance(mask, RecurrentPast):
            return StateCache(rows, capacity, device=device)
        if mask.window and mask.window < capacity:
            return SlidingCache(rows, capacity, mask.window, device=device)
        return growing(rows, capacity, device)

    caches = {name: own(mask) for name, mask in masks.items()}
    if all(isinstance(cache, SlotCache) for cache in caches.values()):
        return growing(rows, capacity, device)  # one for all: they would hold the same
    if all(isinstance(cache, StateCache) for cache in caches.values()):
        return StateCache(rows, capacity, device=device)
    return CacheByMask(caches)
