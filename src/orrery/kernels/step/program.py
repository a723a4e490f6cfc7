"""A finished model's step as one compiled call: one new token in each row, from the token's number to the logits."""

import threading
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from orrery.kernels.step.listing import KINDS, padded
from orrery.kernels.step.loading import compiled_run
from orrery.kernels.step.translate import BIASED, ListingTranslation
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionCall, PositionScheme
from orrery.nn.stack import Stack

_ROWS_TOGETHER = 4
_SLACK = 64
_FIRST_ANGLES, _KINDS_OF_ANGLES = 256, 8
"""Tokens for which angles are computed at first, and rotations of which those are kept."""


@final
class StepProgram:
    """The step of a decoder over the cache that its eager step uses; matrices are read where they are.

    Small parameters (norms, biases) are copied: a model whose numbers change needs a new program.

    Args:
        stack: the blocks.
        embed: the embedding of the tokens.
        head: the language-model head.

    Raises:
        NotRunnableError: no instruction computes a part.
    """

    def __init__(self, stack: Stack, embed: nn.Module, head: nn.Module) -> None:
        translation = ListingTranslation(stack, embed, head)
        listing = self._listing = translation.listing
        self._stack, self._windows, self._logits = stack, translation.windows, translation.logits
        self._program = np.array(listing.instructions, dtype=np.int64)
        self._reals = np.array(listing.reals, dtype=np.float64)
        self._table = np.array(listing.matrices, dtype=np.int64)
        self._masks = sorted({mask for mask, _, _ in listing.depths.values()})
        self._angles: dict[tuple[Rotary, bytes], tuple[Tensor, Tensor]] = {}
        self._places: WeakKeyDictionary[RowCache, tuple[int, NDArray[np.int64]]] = WeakKeyDictionary()
        self._free: list[NDArray[np.float32]] = []
        self._lock = threading.Lock()

    @torch.no_grad()
    def __call__(self, tokens_B: Int[Tensor, "B"], cache: RowCache) -> Float[Tensor, "B V"]:
        """Write one token a row into the cache and return the logits after it, in float32.

        Raises:
            UsageError: a row is full.
        """
        rows, before = len(tokens_B), cache.lengths
        places = TokenPositions(cache.next_positions(1, tokens_B.device).expand(rows, 1))
        keys = cache.reserve(places, None, self._stack.masks, [1] * rows)
        bound = self._bound(PositionCall(places, keys, cache.capacity, torch.float32), before)
        spans = self._spans(cache, before)
        longest = padded(max(seen for rows_of_mask in spans for _, _, seen in rows_of_mask))
        scores = rows * self._listing.heads * _ROWS_TOGETHER * longest
        work = self._workspace(self._listing.most * rows + scores + 2 * _SLACK)
        address = work.ctypes.data
        begin = -(-address // 64) * 64
        scratch = begin + 4 * (self._listing.most * rows + _SLACK)
        first = (begin - address) // 4 + self._logits.place * rows
        compiled_run()(
            self._program, self._reals, self._table, self._stores(cache), np.array(spans, np.int64),
            np.array([numbers for numbers, _ in bound], np.int64).reshape(-1, 4), tokens_B.numpy(), rows,
            begin, scratch, 4 * longest,
        )  # fmt: skip
        padded_logits = work[first : first + rows * self._logits.step].reshape(rows, -1)[:, : self._logits.width]
        logits_BV = torch.from_numpy(padded_logits.copy())
        with self._lock:
            self._free.append(work)
        return logits_BV

    def _workspace(self, numbers: int) -> NDArray[np.float32]:
        """Return memory that no other call uses."""
        with self._lock:
            while self._free:
                work = self._free.pop()
                if len(work) >= numbers:
                    return work
        return np.empty(numbers + numbers // 4, np.float32)

    def _bound(self, call: PositionCall, before: tuple[int, ...]) -> list[tuple[tuple[int, int, int, int], Any]]:
        """Return for each scheme of positions the addresses of its numbers for this call, and what holds these."""
        addresses: list[tuple[tuple[int, int, int, int], Any]] = []
        for scheme in self._stack.positions.values():
            if isinstance(scheme, Rotary):
                addresses.append(self._turned(scheme, call.length, before))
                continue
            assert isinstance(scheme, PositionScheme)
            bound: Any = scheme.bind(call)
            if isinstance(scheme, BIASED):
                bias = next(iter(bound.biases.values())).float().contiguous()
                addresses.append(((bias.data_ptr(), 0, 4 * bias[0].numel(), 4 * bias.shape[-1]), bias))
            else:
                added = bound.table_BLD.float().contiguous()
                addresses.append(((added.data_ptr(), 0, 4 * added.shape[-1], 0), added))
        return addresses

    def _turned(
        self, scheme: Rotary, length: int, before: tuple[int, ...]
    ) -> tuple[tuple[int, int, int, int], tuple[Tensor, Tensor]]:
        """Return where cosine and sine of the rows' positions are: they are computed once, for more and more tokens."""
        key, longest = (scheme, scheme.rates(length).numpy().tobytes()), max(before)
        angles = self._angles.get(key)
        if angles is None or len(angles[0]) <= longest:
            if len(self._angles) >= _KINDS_OF_ANGLES:
                self._angles.clear()
            places = TokenPositions(torch.arange(max(_FIRST_ANGLES, 2 * longest), device="cpu")[None])
            bound: Any = scheme.bind(PositionCall(places, {}, length, torch.float32))
            angles = self._angles[key] = bound.cosine[0, 0].contiguous(), bound.sine[0, 0].contiguous()
        cosine_PR, sine_PR = angles
        if len(set(before)) > 1:
            before_B = torch.tensor(before, device="cpu")
            cosine_BR, sine_BR = cosine_PR[before_B], sine_PR[before_B]
            step, first = 4 * cosine_PR.shape[1], 0
        else:
            cosine_BR, sine_BR, step, first = cosine_PR, sine_PR, 0, 4 * longest * cosine_PR.shape[1]
        return (cosine_BR.data_ptr() + first, sine_BR.data_ptr() + first, step, 0), (cosine_BR, sine_BR)

    def _spans(self, cache: RowCache, before: tuple[int, ...]) -> list[list[tuple[int, int, int]]]:
        """Return by mask and row the slot of the new token, the first slot that it sees, and how many."""
        spans = []
        for mask in self._masks:
            store, window = cache.store_of(mask), self._windows[mask]
            if isinstance(store, SlidingStore):
                slots = store.slots
                spans.append([(length % slots, 0, min(length + 1, slots)) for length in before])
            else:
                firsts = [0 if window is None else max(0, length + 1 - window) for length in before]
                spans.append(
                    [(length, first, length + 1 - first) for length, first in zip(before, firsts, strict=True)]
                )
        return spans

    def _stores(self, cache: RowCache) -> NDArray[np.int64]:
        """Return by depth where keys and values are; as long as no store moves them, what was returned before."""
        stores = [cache.store_of(mask) for mask in self._masks]
        changes = 0
        for store in stores:
            assert isinstance(store, SlotStore | SlidingStore)
            changes += store.changes
        known = self._places.get(cache)
        if known is None or known[0] != changes:
            known = self._places[cache] = changes, self._looked_up(cache)
        return known[1]

    def _looked_up(self, cache: RowCache) -> NDArray[np.int64]:
        """Return by depth the addresses of keys and values, their kind, the slots of a row, and the number of spans."""
        stores = [(0, 0, 0, 0, 0)] * len(self._stack.order)
        for depth, (mask, _, _) in self._listing.depths.items():
            store = cache.store_of(mask)
            assert isinstance(store, SlotStore | SlidingStore)
            keys, values = store.keys[depth], store.values[depth]
            assert keys.is_contiguous()
            assert values.is_contiguous()
            kind, slots = KINDS[keys.dtype], keys.shape[2]
            stores[depth] = keys.data_ptr(), values.data_ptr(), kind, slots, self._masks.index(mask)
        return np.array(stores, np.int64)
