"""A finished model's step as one compiled call: one new token in each row, from the token's number to the logits."""

import threading
from typing import Any, final

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
        token: Any = embed.get_submodule("token")
        self._rows_of = None if token.weight.is_floating_point() else token
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
        bound = self._bound(PositionCall(places, keys, cache.capacity, torch.float32))
        if self._rows_of is not None:
            given = self._rows_of(tokens_B).float().contiguous()
            bound.append(((given.data_ptr(), 0, 4 * given.shape[-1], 0), given))
        spans = self._spans(cache, before)
        stores = self._stores(cache)
        longest = padded(int(spans[:, :, 2].max()))
        scores = rows * self._listing.heads * _ROWS_TOGETHER * longest
        work = self._workspace(self._listing.most * rows + scores + 2 * _SLACK)
        begin = work.ctypes.data + -work.ctypes.data % 64
        scratch = begin + 4 * (self._listing.most * rows + _SLACK)
        numbers = np.array([numbers for numbers, _ in bound], dtype=np.int64).reshape(-1, 4)
        compiled_run()(
            self._program, self._reals, self._table, stores, spans, numbers, tokens_B.numpy(), rows,
            begin, scratch, 4 * longest,
        )  # fmt: skip
        first = (begin - work.ctypes.data) // 4 + self._logits.place * rows
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

    def _bound(self, call: PositionCall) -> list[tuple[tuple[int, int, int, int], Any]]:
        """Return for each scheme of positions the addresses of its numbers for this call, and what holds these."""
        addresses: list[tuple[tuple[int, int, int, int], Any]] = []
        for scheme in self._stack.positions.values():
            assert isinstance(scheme, PositionScheme)
            bound: Any = scheme.bind(call)
            if isinstance(scheme, Rotary):
                cosine, sine = bound.cosine.contiguous(), bound.sine.contiguous()
                numbers = (cosine.data_ptr(), sine.data_ptr(), 4 * cosine.shape[-1], 0)
                addresses.append((numbers, (cosine, sine)))
            elif isinstance(scheme, BIASED):
                bias = next(iter(bound.biases.values())).float().contiguous()
                addresses.append(((bias.data_ptr(), 0, 4 * bias[0].numel(), 4 * bias.shape[-1]), bias))
            else:
                added = bound.table_BLD.float().contiguous()
                addresses.append(((added.data_ptr(), 0, 4 * added.shape[-1], 0), added))
        return addresses

    def _spans(self, cache: RowCache, before: tuple[int, ...]) -> NDArray[np.int64]:
        """Return by mask and row the slot of the new token, the first slot that it sees, and how many."""
        spans = np.empty((len(self._masks), len(before), 3), np.int64)
        for number, mask in enumerate(self._masks):
            store, window = cache.store_of(mask), self._windows[mask]
            for row, length in enumerate(before):
                if isinstance(store, SlidingStore):
                    spans[number, row] = length % store.slots, 0, min(length + 1, store.slots)
                else:
                    first = 0 if window is None else max(0, length + 1 - window)
                    spans[number, row] = length, first, length + 1 - first
        return spans

    def _stores(self, cache: RowCache) -> NDArray[np.int64]:
        """Return by depth where keys and values are."""
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
