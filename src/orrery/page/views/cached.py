"""What a live cache holds of a text: places, bytes and numbers, of every layer, compared with a pass without one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.decoding_memory import layers
from orrery.nn.masks import RecurrentPast
from orrery.page.views._live_cache import HeldRows, live_cache
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section

SHOWN = 512
"""Places of a layer whose numbers are sent: the last ones."""
WIDEST = 1024
"""Numbers of a row of a state that are sent."""


class CachedSettings(Section):
    """What is looked at.

    Attributes:
        tokens: how many tokens of the text the cache has read; all by default.
        layer: which of the layers that hold something, by its number in the list.
        head: of keys and values, the head that is held, several query heads may share it; of a state, which part.
    """

    tokens: int | None = Field(default=None, ge=1)
    layer: int = Field(default=0, ge=0)
    head: int = Field(default=0, ge=0)


@register
class Cached(View):
    """``cache_t = [cache_{t-1}; k_t, v_t]``: every layer's rows, and what a window, latent or state makes of it."""

    kind: ClassVar[str] = "cached"
    screen: ClassVar[str] = "decode"
    order: ClassVar[int] = 21
    share: ClassVar[int] = 1
    Settings: ClassVar[type[Section]] = CachedSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether a pass is there, and the model keeps something of what it has read."""
        model = subject.lm.model
        if subject.inside is None or not model.spec.writes:
            return False
        recurs = any(isinstance(mask, RecurrentPast) for mask in model.stack.masks.values())
        return recurs or next(layers(model.spec), None) is not None

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the heads of every layer behind the whole text, the first head of each before the others."""
        heads = [_heads(layer) for layer in live_cache(subject.seen, _length(subject)).layers]
        for head in range(max(heads, default=0)):
            yield from (CachedSettings(layer=number, head=head) for number, many in enumerate(heads) if head < many)

    def payload(self, subject: ViewSubject, settings: CachedSettings) -> Payload:
        """Return what all layers hold, and the numbers of one head of one of them."""
        inside, tokens = subject.seen, settings.tokens
        length = _length(subject)
        if tokens is not None and tokens > length:
            raise UsageError(f"a cache of {tokens} tokens of a text of {length}", f"ask for 1 to {length}")
        cache = live_cache(inside, tokens or length)
        if settings.layer >= len(cache.layers) or settings.head >= _heads(cache.layers[settings.layer]):
            message = f"layer {settings.layer} of this cache holds no head {settings.head}"
            raise UsageError(message, f"it has: {_known(cache.layers)}")
        layer = cache.layers[settings.layer]
        facts = {
            **{"tokens": cache.tokens, "length": length, "stepped": cache.stepped, "allocated": cache.allocated},
            **{"layer": settings.layer, "head": settings.head, "edited": _edited(subject)},
            "layers": [_told(one) for one in cache.layers],
            "positions": layer.positions[-SHOWN:],
            "slots": layer.slots[-SHOWN:],
            "served": _served(layer, settings.head),
        }
        numbers = {name: one.float() for name, one in _numbers(layer, settings.head).items()}
        return Payload(facts, numbers, cache.checks)


def _length(subject: ViewSubject) -> int:
    """Return how many tokens the pass has read; without a tokenizer they have ids alone."""
    return int(subject.seen.first.ids.shape[1])


def _told(layer: HeldRows) -> dict[str, Any]:
    """Return what the table says of a layer."""
    return {
        **{"depth": layer.depth, "path": layer.path, "kind": layer.kind, "store": layer.store},
        **{"heads": layer.heads, "held": _heads(layer), "window": layer.window, "bytes": layer.bytes},
        "places": len(layer.positions),
        "shapes": {name: list(one.shape) for name, one in layer.rows.items()},
    }


def _heads(layer: HeldRows) -> int:
    """Return how many heads are held, or parts of a state."""
    return len(layer.rows) if layer.kind == "state" else len(next(iter(layer.rows.values())))


def _numbers(layer: HeldRows, head: int) -> Mapping[str, Tensor]:
    """Return the numbers of one head, ``[S, C]`` each; of a state those of one part, its last axis in a row."""
    if layer.kind != "state":
        return {name: one[head, -SHOWN:].contiguous() for name, one in layer.rows.items()}
    name = list(layer.rows)[head]
    part = layer.rows[name]
    flat = part.reshape(-1, part.shape[-1]) if part.dim() > 1 else part[None]
    return {name: flat[:SHOWN, :WIDEST].contiguous()}


def _served(layer: HeldRows, head: int) -> list[int]:
    """Return the query heads that read a head that is held."""
    if layer.heads is None:
        return []
    shared = layer.heads // _heads(layer)
    return list(range(head * shared, (head + 1) * shared))


def _known(held: Sequence[HeldRows]) -> str:
    return ", ".join(f"layer {number}: {_heads(one)}" for number, one in enumerate(held)) or "nothing"


def _edited(subject: ViewSubject) -> bool:
    """Say whether the pass has edits of tensors, which the cache knows nothing of."""
    return bool(subject.seen.edits.compiled())
