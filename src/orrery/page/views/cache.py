"""The memory of decoding: what each token leaves in the cache, as it is and as other designs would have it."""

from typing import Any, ClassVar

import torch

from orrery.inspection.checks import Check
from orrery.models.decoding_memory import CachingLayer, cache_bytes, layers
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.cache.states import StateStore
from orrery.nn.cache.store import Store
from orrery.nn.inputs import Images
from orrery.nn.masks import Mask, RecurrentPast
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register

SHORT, LONG = 5, 12
"""Tokens of the two live caches whose difference is compared with the formula."""


@register
class CacheGrowth(View):
    """``bytes = 2 L T H_kv C size``: for each of L layers and T tokens a key and a value, H_kv heads of C channels."""

    kind: ClassVar[str] = "cache"
    screen: ClassVar[str] = "decode"
    order: ClassVar[int] = 20

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model keeps something of every token that it reads."""
        return subject.lm.model.spec.writes and next(layers(subject.lm.model.spec), None) is not None

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return what each layer keeps, with the bytes of a live cache beside the formula's."""
        spec, dtype = subject.lm.model.spec, subject.lm.model.dtype
        facts = {
            "context": subject.lm.context,
            "dtype": str(dtype).removeprefix("torch."),
            "size": dtype.itemsize,
            "layers": [_told(layer) for layer in layers(spec)],
            "read": 0 if subject.inside is None else len(subject.inside.tokens),
        }
        return Payload(facts, checks=[_live(subject, dtype)])


def _told(layer: CachingLayer) -> dict[str, Any]:
    """Return what one layer keeps; heads and channels where they are what is kept."""
    part: Any = layer.part
    heads = {"heads": getattr(part, "heads", None), "kv_heads": getattr(part, "kv_heads", None)}
    widths = {"head_width": getattr(part, "head_width", None), "latent": getattr(part, "latent", None)}
    return {"depth": layer.depth, "cached": layer.cached, "window": layer.window, **heads, **widths}


@torch.no_grad()
def _live(subject: ViewSubject, dtype: torch.dtype) -> Check:
    """Compare how the bytes of a live cache grow with the formula; a row has one spare slot, whatever its length."""
    spec = subject.lm.model.spec
    longer = min(LONG, subject.lm.context)
    shorter = min(SHORT, longer)
    grown = _bytes(subject, longer) - _bytes(subject, shorter)
    wanted = cache_bytes(spec, dtype, longer) - cache_bytes(spec, dtype, shorter)
    name = f"bytes of a live cache, {longer} tokens against {shorter}, are the formula's"
    return Check(name, float(abs(grown - wanted)), 0.0)


def _bytes(subject: ViewSubject, tokens: int) -> int:
    model, device = subject.lm.model, subject.lm.device
    stores = {name: _store(mask, tokens, device) for name, mask in model.stack.masks.items()}
    cache = RowCache(1, tokens, stores, device)
    read = next(iter(model.spec.inputs.values()))
    if isinstance(read, Images):
        source = torch.zeros(1, *read.shape, dtype=model.dtype, device=device)
    else:
        source = torch.ones(1, 1, dtype=torch.long, device=device)
    _, session = model.start(source, tokens, cache=cache)  # type: ignore[operator]
    return int(session.bytes())


def _store(mask: Mask, tokens: int, device: torch.device) -> Store:
    """Return what keeps as many tokens as the formula counts; a state keeps none, and has one size."""
    if isinstance(mask, RecurrentPast):
        return StateStore()
    if mask.window:
        return SlidingStore(1, tokens, mask.window, device=device)
    return SlotStore(1, tokens, device=device, static=True)
