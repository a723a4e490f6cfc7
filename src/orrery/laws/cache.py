"""The law of the cache: cached decoding equals the full forward, for every kind of cache."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, within
from orrery.laws.models import Subject, random_ids, require, spec_of, tiny
from orrery.laws.place import device
from orrery.laws.transcript import FullForwards, Transcript
from orrery.nn.cache.kinds import cache_for, growing, paged, static
from orrery.nn.cache.pages import PagePool
from orrery.nn.cache.rows import RowCache
from orrery.nn.masks import Mask

CAPACITY = 40
NO_CACHE = "an encoder reads whole rows and remembers nothing"
Kind = Callable[[int, int], RowCache]


def check(family: str) -> Iterator[Evidence]:
    """Compare every answer of a session with a full forward of that row alone."""
    require(spec_of(family).writes, why=NO_CACHE)
    evidence = partial(within, law="cache", family=family)
    # Whatever the cache, it is compared with the same full forwards.
    model, small = FullForwards(tiny(family)), FullForwards(tiny(family, torch.float32))
    for kind, cache in kinds(model.model).items():
        yield evidence(f"{kind}: token by token", value=token_by_token(model, cache), bound=FLOAT64)
        yield evidence(f"{kind}: token by token, float32", value=token_by_token(small, cache), bound=FLOAT32)
        yield evidence(f"{kind}: ragged rows, steps of 0 to 5", value=ragged(model, cache), bound=FLOAT64)
        # What a window has overwritten, or a state has absorbed, cannot come back: truncate refuses it by name.
        forgets = "sliding" not in kind and "recurrent" not in kind
        yield evidence(f"{kind}: select, join, truncate", value=rearranged(model, cache, forgets), bound=FLOAT64)
        yield evidence(f"{kind}: greedy tokens that differ", value=greedy_differences(model, cache), bound=0)


def kinds(model: Subject) -> dict[str, Kind]:
    """Return the caches that a model can have: a sliding one where a mask looks back a window, or a state.

    Where some blocks leave a state and others keys, each has a store of its own, and the keys may lie in pages.
    """
    masks = model.stack.masks
    where = device()
    own = cache_for(masks, 1, CAPACITY).kind
    if "recurrent" in own:
        stores = {store.kind.partition(" (")[0] for store in cache_for(masks, 1, CAPACITY).stores.values()}
        by_name: dict[str, Kind] = {" beside ".join(sorted(stores)): partial(cache_for, masks, device=where)}
        if "growing" in stores:
            by_name["paged beside recurrent"] = partial(_beside_pages, masks)
        return by_name
    by_name = {"growing": partial(growing, device=where), "static": partial(static, device=where), "paged": small_pages}
    if "sliding" in own:
        by_name["sliding"] = partial(cache_for, masks, device=where)
    return by_name


def _beside_pages(masks: Mapping[str, Mask], rows: int, capacity: int) -> RowCache:
    return cache_for(masks, rows, capacity, device(), PagePool(5))


def small_pages(rows: int, capacity: int) -> RowCache:
    """Return a cache of pages so small that every row of the law has several."""
    return paged(rows, capacity, device(), PagePool(5))


@torch.no_grad()
def token_by_token(model: Subject | FullForwards, cache: Kind) -> float:
    """Start with three tokens and take nine more, one at a time."""
    rows = random_ids(2, 12).tolist()
    transcript = Transcript.start(model, [row[:3] for row in rows], cache(2, CAPACITY))
    for t in range(3, 12):
        transcript.step([row[t : t + 1] for row in rows])
    return transcript.worst


@torch.no_grad()
def ragged(model: Subject | FullForwards, cache: Kind) -> float:
    """Let rows differ in their prompts and in the size of each step."""
    tokens = random_ids(64).tolist()
    cut = lambda *sizes: [[tokens.pop() for _ in range(size)] for size in sizes]  # noqa: E731
    transcript = Transcript.start(model, cut(7, 1, 4), cache(3, CAPACITY))
    for sizes in ((1, 3, 2), (0, 5, 1), (2, 0, 4), (1, 1, 1)):
        transcript.step(cut(*sizes))
    return transcript.worst


@torch.no_grad()
def rearranged(model: Subject | FullForwards, cache: Kind, forgets: bool = True) -> float:
    """Reorder and repeat rows, append another session, forget and go on."""
    tokens = random_ids(8, 12, seed=2).tolist()
    transcript = Transcript.start(model, [tokens[0][:6], tokens[1][:3]], cache(2, CAPACITY))
    transcript.select([1, 0, 1])
    transcript.step([row[:2] for row in tokens[2:5]])
    transcript.join(Transcript.start(model, [tokens[5][:9]], cache(1, CAPACITY)))
    transcript.step([row[2:3] for row in tokens[:4]])
    if forgets:
        transcript.truncate([4, 5, 1, 7])
    transcript.step([row[3:6] for row in tokens[:4]])
    return transcript.worst


@torch.no_grad()
def greedy_differences(definition: FullForwards, cache: Kind) -> int:
    """Write sixteen tokens greedily, with and without a cache, and count the differences."""
    model, prompt = definition.model, random_ids(3, 4)
    logits, session = model.start(prompt, CAPACITY, cache=cache(3, CAPACITY))
    cached = full = prompt
    for _ in range(16):
        full = _append(full, definition.logits(full.tolist())[:, -1])
        cached = _append(cached, logits)
        logits = model.step(cached[:, -1:], session)[:, -1]
    return int((cached != full).sum())


def _append(ids: Tensor, logits: Tensor) -> Tensor:
    return torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
