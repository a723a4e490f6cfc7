"""A live cache of the text of a pass, written token by token, beside the same rows computed without one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int
from torch import Tensor, nn

from orrery.inspection.checks import Check, bound
from orrery.inspection.recorder import Recorder
from orrery.models.decoding_memory import cache_bytes
from orrery.models.session import DecodingSession
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.sources import CrossSource
from orrery.nn.cache.key_value_store import KeyValueStore
from orrery.nn.cache.states import StateStore
from orrery.nn.cache.store import Store
from orrery.nn.masks import EMPTY_SLOT
from orrery.page.views._inside import Inside

STEPPED = 16
"""Tokens that are written one by one; those before them are read in one call, as a prompt is."""
MOST = 4
"""Caches that are held of a pass."""
_RECORDED = ("*.k", "*.v", "*.latent")

Rows = Mapping[str, Tensor]
"""By name ``[K, S, C]``: heads, places in the order of the text, channels; a state in any shape."""


@dataclass(frozen=True)
class HeldRows:
    """What one layer holds.

    Attributes:
        depth: of its block.
        path: the key of the layer.
        kind: ``keys``, ``latent``, ``source`` (of cross-attention) or ``state``.
        store: what keeps it, in words.
        rows: what is held.
        whole: the same, computed without a cache.
        positions: of the places that are held; nothing for a state.
        slots: where in the store each stands.
        heads: how many query heads read it; nothing for a state.
        window: how many tokens the store keeps at most; nothing where it keeps all.
    """

    depth: int
    path: str
    kind: str
    store: str
    rows: Rows
    whole: Rows
    positions: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    heads: int | None = None
    window: int | None = None

    @property
    def bytes(self) -> int:
        """The bytes of what is held, without spare slots."""
        return sum(one.nbytes for one in self.rows.values())

    def check(self) -> Check:
        """Compare what is held with what is computed without a cache."""
        worst, allowed = 0.0, 0.0
        for name, held in self.rows.items():
            made = self.whole[name].double()
            off = (held.double() - made).abs().max() / made.abs().max().clamp(min=1)
            worst, allowed = max(worst, float(off)), max(allowed, bound(held.dtype))
        return Check(f"{self.path}: what the cache holds is what a pass without one computes", worst, allowed)


@dataclass(frozen=True)
class LiveCache:
    """The cache behind so many tokens of a text.

    Attributes:
        tokens: how many it has read.
        stepped: how many of them one by one.
        layers: what each layer holds.
        allocated: the bytes of the storage, spare slots and room included.
        checks: of the bytes of what is held, and of the numbers of each layer.
    """

    tokens: int
    stepped: int
    layers: list[HeldRows]
    allocated: int
    checks: list[Check]


_HELD: WeakKeyDictionary[Inside, dict[int, LiveCache]] = WeakKeyDictionary()


def live_cache(inside: Inside, tokens: int) -> LiveCache:
    """Return the cache behind the first tokens of a pass; without its edits of tensors, which act in a pass alone."""
    held = _HELD.setdefault(inside, {})
    if tokens not in held:
        if len(held) >= MOST:
            held.pop(next(iter(held)))
        held[tokens] = _made(inside, tokens)
    return held[tokens]


@torch.no_grad()
def _made(inside: Inside, tokens: int) -> LiveCache:
    *source, ids_BL = inside.first.inputs
    ids_BL = ids_BL[:, :tokens]
    stepped = 0 if inside.model.reads_at_once and not source else min(STEPPED, tokens - 1)
    session = _started(inside.model, source, ids_BL[:, : tokens - stepped], tokens)
    for place in range(tokens - stepped, tokens):
        inside.model.step(ids_BL[:, place : place + 1], session)  # type: ignore[operator]
    recorder = Recorder(keep=_RECORDED)
    inside.model.logits(*source, ids_BL, kernel=eager, taps=recorder)
    at_once = _started(inside.model, source, ids_BL, tokens)
    layers = [*_keys(inside, session, recorder.values), *_sources(inside, session, recorder.values)]
    layers += _states(session, at_once)
    layers.sort(key=lambda one: one.depth)
    checks = [*_bytes(inside, layers, tokens), *(one.check() for one in layers)]
    return LiveCache(tokens, stepped, layers, session.bytes(), checks)


def _bytes(inside: Inside, layers: Sequence[HeldRows], tokens: int) -> list[Check]:
    """Compare the bytes of what is held with the formula's, where everything is keys, values and latents."""
    held = [one for one in layers if one.kind in ("keys", "latent")]
    if not held:
        return []
    counted, dtype = sum(one.bytes for one in held), next(iter(held[0].rows.values())).dtype
    off = abs(counted - cache_bytes(inside.model.spec, dtype, tokens))
    return [Check("the bytes of what is held are the formula's", float(off), 0.0)]


def _started(model: Any, source: list[Tensor], ids_BL: Int[Tensor, "B L"], capacity: int) -> DecodingSession:
    """Return the session of one call over these tokens."""
    if source:
        session: DecodingSession = model.start(source[0], capacity, prompt=ids_BL)[1]
        return session
    begun: DecodingSession = model.start(ids_BL, capacity)[1]
    return begun


def _attentions(inside: Inside) -> Iterator[tuple[int, str, Any]]:
    """Yield every attention with its depth and the key of its tensors; of several that take turns at a depth, one."""
    stack = inside.model.stack
    for depth, number in enumerate(stack.order):
        known: dict[str, nn.Module] = {}
        for part in stack.blocks[number].modules():
            if isinstance(part, MultiHeadAttention | LatentAttention | DifferentialAttention):
                known.setdefault(f"{stack.path}blocks.{depth}.{part.role}", part)
        for path, part in known.items():
            yield depth, path, part


def _keys(inside: Inside, session: DecodingSession, recorded: Mapping[str, Tensor]) -> Iterator[HeldRows]:
    for depth, path, part in _attentions(inside):
        store = session.cache.store_of(part.mask) if not _crosses(part) else None
        if not isinstance(store, KeyValueStore) or depth not in store.keys:
            continue
        place_S = store.positions_BS[0, :-1]
        slots = sorted((place_S < EMPTY_SLOT).nonzero().flatten().tolist(), key=lambda slot: int(place_S[slot]))
        positions = place_S[slots].tolist()
        pair = [x[0][:, slots] for x in (store.keys[depth], store.values[depth])]
        rows, whole = _named(part, path, pair, positions, recorded)
        kind = "latent" if isinstance(part, LatentAttention) else "keys"
        told = {"heads": _heads(part), "window": getattr(store, "window", None)}
        yield HeldRows(depth, path, kind, store.kind, rows, whole, positions, slots, **told)


def _named(
    part: nn.Module, path: str, pair: list[Tensor], positions: list[int], recorded: Mapping[str, Tensor]
) -> tuple[Rows, Rows]:
    """Return what is held by name, and the same rows of the pass without a cache."""
    first, second = pair
    k_KSC, v_KSE = (recorded[f"{path}.{name}"][0][:, positions] for name in ("k", "v"))
    if isinstance(part, LatentAttention):
        latent_1SR = recorded[f"{path}.latent"][:, positions]
        turned_1SC = k_KSC[:1, :, part.widths.plain :]
        return {"latent": first, "rotated": second}, {"latent": latent_1SR, "rotated": turned_1SC}
    if isinstance(part, DifferentialAttention):  # a pass shows the values side by side, as each pair shares them
        v_KSE = torch.cat(v_KSE[: len(v_KSE) // 2].chunk(2, dim=-1))
    return {"k": first, "v": second}, {"k": k_KSC, "v": v_KSE}


def _sources(inside: Inside, session: DecodingSession, recorded: Mapping[str, Tensor]) -> Iterator[HeldRows]:
    """Yield what cross-attention keeps of the source, which is projected once."""
    for depth, path, part in _attentions(inside):
        if _crosses(part) and depth in session.cache.cross:
            kv = session.cache.cross[depth]
            rows = {"k": kv.k_BKSC[0], "v": kv.v_BKSE[0]}
            whole = {name: recorded[f"{path}.{name}"][0] for name in rows}
            places = list(range(rows["k"].shape[1]))
            yield HeldRows(depth, path, "source", "made once", rows, whole, places, places, _heads(part))


def _states(session: DecodingSession, at_once: DecodingSession) -> Iterator[HeldRows]:
    """Yield the states of recurrences, beside those of one call over the whole text."""
    for name, store in session.cache.stores.items():
        for (depth, role), state in _states_of(store).items():
            other = _states_of(at_once.cache.stores[name])[depth, role]
            rows = {f"state {number}": part[0] for number, part in enumerate(state)}
            whole = {f"state {number}": part[0] for number, part in enumerate(other)}
            yield HeldRows(depth, f"blocks.{depth}.{role}", "state", store.kind, rows, whole)


def _states_of(store: Store) -> Mapping[Any, Any]:
    return store.states if isinstance(store, StateStore) else {}


def _crosses(part: nn.Module) -> bool:
    return isinstance(part, MultiHeadAttention) and isinstance(part.source, CrossSource)


def _heads(part: Any) -> int:
    """Return how many query heads an attention has."""
    return int(part.heads) if isinstance(part, LatentAttention) else part.q.out_features // part.head_width
