"""The memory of decoding, by formula: what a token leaves in the cache of a model."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch

from orrery.models.model import ModelSpec
from orrery.nn.spec import traverse


@runtime_checkable
class Caching(Protocol):
    """An attention that keeps something of every token: ``cached`` numbers, for as long as its ``mask`` shows them."""

    @property
    def cached(self) -> int:
        """The numbers that a token leaves."""
        ...

    @property
    def mask(self) -> str:
        """The name of the mask."""
        ...


def cache_bytes(spec: ModelSpec, dtype: torch.dtype, tokens: int) -> int:
    """Return the bytes that a row of ``tokens`` tokens needs: ``size sum_layers cached_l min(tokens, window_l)``.

    ``cached`` is ``2 K C`` for K key-value heads of C channels (multi-head, grouped, multi-query), and ``latent +
    rotated`` for latent attention; ``window`` is that of the layer's mask. An encoder-decoder keeps the projections
    of its source beside this. A cache allocates more: a spare slot a row, and the growing kind up to twice as many.

    Args:
        spec: the architecture.
        dtype: of the keys and values.
        tokens: the length of the row.
    """
    return dtype.itemsize * sum(cached * min(tokens, window or tokens) for cached, window in _layers(spec))


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype, held: int = 0) -> int:
    """Return the bytes that one more token needs in a row that holds ``held`` tokens.

    A layer whose window is full gives the new token the place of an old one, and needs none.
    """
    return cache_bytes(spec, dtype, held + 1) - cache_bytes(spec, dtype, held)


def _layers(spec: ModelSpec) -> Iterator[tuple[int, int | None]]:
    """Yield, for every attention at every depth, the numbers that a token leaves and how far back its mask looks."""
    stack = spec.answering
    for number in range(len(stack.blocks)) if stack.order is None else stack.order:
        for _, part in traverse(stack.blocks[number].residuals):
            if isinstance(part, Caching) and part.cached:
                yield part.cached, stack.masks[part.mask].window
