"""The memory of decoding, by formula: what a token leaves in the cache of a model."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    return dtype.itemsize * sum(layer.cached * min(tokens, layer.window or tokens) for layer in layers(spec))


def bytes_per_token(spec: ModelSpec, dtype: torch.dtype, held: int = 0) -> int:
    """Return the bytes that one more token needs in a row that holds ``held`` tokens.

    A layer whose window is full gives the new token the place of an old one, and needs none.
    """
    return cache_bytes(spec, dtype, held + 1) - cache_bytes(spec, dtype, held)


@dataclass(frozen=True)
class CachingLayer:
    """One attention that keeps something of every token.

    Attributes:
        depth: of its block.
        part: its spec.
        window: how far back its mask looks; nothing where it looks back to the first token.
    """

    depth: int
    part: Caching
    window: int | None

    @property
    def cached(self) -> int:
        """The numbers that a token leaves."""
        return self.part.cached


def layers(spec: ModelSpec) -> Iterator[CachingLayer]:
    """Yield every attention at every depth that keeps something of its tokens."""
    stack = spec.answering
    for depth, number in enumerate(range(len(stack.blocks)) if stack.order is None else stack.order):
        for _, part in traverse(stack.blocks[number].residuals):
            if isinstance(part, Caching) and part.cached:
                yield CachingLayer(depth, part, stack.masks[part.mask].window)
