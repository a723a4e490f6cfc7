"""Every kind of cache by name, and the smallest that fits a stack."""

from collections.abc import Mapping

import torch

from orrery.nn.cache.paged import PagedStore
from orrery.nn.cache.pages import PagePool
from orrery.nn.cache.rows import EVERY_MASK, RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.cache.states import StateStore
from orrery.nn.cache.store import Store
from orrery.nn.masks import Mask, RecurrentPast


def growing(rows: int, capacity: int, device: torch.device | None = None) -> RowCache:
    """Return a cache that allocates as rows grow, up to ``capacity`` tokens a row."""
    return RowCache(rows, capacity, {EVERY_MASK: SlotStore(rows, capacity, device=device)}, device)


def static(rows: int, capacity: int, device: torch.device | None = None) -> RowCache:
    """Return a cache of ``capacity`` slots from the start: one shape for a compiled step."""
    return RowCache(rows, capacity, {EVERY_MASK: SlotStore(rows, capacity, device=device, static=True)}, device)


def paged(rows: int, capacity: int, device: torch.device | None = None, pool: PagePool | None = None) -> RowCache:
    """Return a cache whose rows hold pages, of a pool that others may share; rows that begin alike hold the same."""
    return RowCache(rows, capacity, {EVERY_MASK: PagedStore(rows, pool, device=device)}, device)


def cache_for(
    masks: Mapping[str, Mask],
    rows: int,
    capacity: int,
    device: torch.device | None = None,
    pool: PagePool | None = None,
) -> RowCache:
    """Return the smallest cache for a stack with these masks, one of pages where a pool is given.

    A recurrence leaves a state, and a window that is shorter than the capacity needs no more slots than its length;
    one that is longer never slides, so that its cache grows and can be cut anywhere, as every other.
    """

    def own(mask: Mask) -> Store:
        if isinstance(mask, RecurrentPast):
            return StateStore()
        if mask.window and mask.window < capacity:
            return SlidingStore(rows, capacity, mask.window, device=device)
        if pool is not None:
            return PagedStore(rows, pool, device=device)
        return SlotStore(rows, capacity, device=device)

    stores = {name: own(mask) for name, mask in masks.items()}
    kinds = {type(store) for store in stores.values()}
    if not kinds or kinds == {SlotStore}:
        return growing(rows, capacity, device)  # one for all: they would hold the same
    if kinds == {PagedStore}:
        return paged(rows, capacity, device, pool)
    return RowCache(rows, capacity, {EVERY_MASK: StateStore()} if kinds == {StateStore} else stores, device)
