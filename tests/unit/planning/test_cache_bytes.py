"""Bytes of a cache by formula: equal to published numbers and to what live caches allocate."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from orrery.families import load_family
from orrery.models.decoding_memory import bytes_per_token, cache_bytes
from orrery.nn.cache.kinds import cache_for, growing, paged, static
from orrery.nn.cache.pages import PagePool
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore

CORNERS = {
    "multi-head": ("llama", {"num_key_value_heads": 6}),
    "grouped": ("llama", {}),
    "multi-query": ("llama", {"num_key_value_heads": 1}),
    "latent": ("deepseek_v3", {}),
    "window": ("mixtral", {}),
    "alternating windows": ("gpt_oss", {"num_hidden_layers": 3}),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("corner", CORNERS)
@torch.no_grad()
def test_live_caches_hold_what_the_formula_says(corner, dtype):
    """A cache of n slots a row, at most a window of them, and one spare; every row and layer alike."""
    name, change = CORNERS[corner]
    family = load_family(name)
    spec = family.spec({**family.TINY, **change})
    model, rows = spec.build(0).to(dtype).eval(), 3
    for tokens in (3, 7, 8, 20):
        stores = {
            name: SlidingStore(rows, tokens, mask.window) if mask.window else SlotStore(rows, tokens, static=True)
            for name, mask in model.stack.masks.items()
        }
        _, session = model.start(torch.ones(rows, 3, dtype=torch.long), tokens, cache=RowCache(rows, tokens, stores))
        spare = bytes_per_token(spec, dtype)
        assert session.bytes() == rows * (cache_bytes(spec, dtype, tokens) + spare)


def tensors_in(thing, seen):
    """Yield every tensor that a thing holds, through all that it refers to."""
    if id(thing) in seen or isinstance(thing, torch.device | torch.dtype | str | int | None | type):
        return
    seen[id(thing)] = thing
    if isinstance(thing, torch.Tensor):
        yield thing
        return
    inside = (
        [*thing.keys(), *thing.values()] if isinstance(thing, dict) else list(getattr(thing, "__dict__", {}).values())
    )
    for part in [*inside, *(thing if isinstance(thing, list | tuple | set) else ())]:
        yield from tensors_in(part, seen)


KINDS = {
    "growing": growing,
    "static": static,
    "paged": lambda rows, capacity: paged(rows, capacity, pool=PagePool(4)),
}


CACHES = [(name, kind) for name in ("gpt2", "llama", "deepseek_v2", "mistral") for kind in KINDS]


@pytest.mark.parametrize(("name", "kind"), [*CACHES, ("mistral", "sliding")])
@torch.no_grad()
def test_a_walk_through_a_cache_finds_keys_and_values_and_nothing_else(name, kind):
    """Queries, scores and patterns are not kept: every slot has the bytes of G19's formula, ``2 K C`` a layer."""
    family = load_family(name)
    spec = family.spec(family.TINY)
    model, rows = spec.build(0).eval(), 3
    make = KINDS.get(kind, partial(cache_for, model.stack.masks))
    _, session = model.start(torch.ones(rows, 9, dtype=torch.long), 40, cache=make(rows, 40))
    for _ in range(4):
        model.step(torch.ones(rows, 1, dtype=torch.long), session)
    tensors = list(tensors_in(session, {}))
    (store,) = session.cache.stores.values()
    held = store.pool if kind == "paged" else store
    known = {x.untyped_storage().data_ptr() for x in (*held.keys.values(), *held.values.values())}
    numbers = [x for x in tensors if x.is_floating_point()]
    assert {x.untyped_storage().data_ptr() for x in numbers} == known
    slots = store.pool.keys[0][0].shape[:2].numel() if kind == "paged" else rows * store.positions_BS.shape[1]
    memory = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in numbers}
    token = bytes_per_token(spec, torch.float32)
    assert sum(memory.values()) == slots * token
    if name != "deepseek_v2":
        attention = spec.stack.blocks[0].residuals["attention"].branch
        assert token == 2 * len(spec.stack.blocks) * attention.kv_heads * attention.head_width * 4
    if kind == "paged":
        assert session.bytes() == rows * 4 * store.pool.size * token  # four pages hold thirteen tokens


def test_the_cache_of_the_largest_gpt_3():
    """G19: ``2 x 96 x 12,288`` numbers of two bytes a token, nine gibibytes for 2,048 tokens."""
    spec = load_family("gpt2").spec({"n_layer": 96, "n_head": 96, "n_embd": 12_288, "n_positions": 2048})
    assert bytes_per_token(spec, torch.float16) == 4_718_592
    assert cache_bytes(spec, torch.float16, 2048) == 9_663_676_416


def test_a_layer_whose_window_is_full_needs_no_more():
    family = load_family("gpt_oss")  # two layers, a window of 7 in the first; 2 key-value heads of 4 channels
    spec = family.spec(family.TINY)
    assert [bytes_per_token(spec, torch.float32, held) for held in (0, 6, 7, 100)] == [128, 128, 64, 64]
    assert cache_bytes(spec, torch.float32, 10) == 64 * (7 + 10)


def test_published_models():
    """2 K C for grouped heads, latent + rotated for latent attention, times layers and two bytes."""
    mixtral, deepseek = load_family("mixtral").spec({}), load_family("deepseek_v3").spec({})
    assert bytes_per_token(mixtral, torch.bfloat16) == 2 * 8 * 128 * 32 * 2 == 131_072
    assert bytes_per_token(deepseek, torch.bfloat16) == (512 + 64) * 61 * 2 == 70_272
    full = 128 * (128 + 64 + 128) * 61 * 2  # were all heads' keys and values kept
    assert full / bytes_per_token(deepseek, torch.bfloat16) > 71


def test_a_block_that_stands_at_several_depths_keeps_a_cache_at_each():
    family = load_family("llama")
    spec = family.spec(family.TINY)
    shared = replace(spec, stack=replace(spec.stack, blocks=spec.stack.blocks[:1], order=(0,) * 5))
    assert 2 * bytes_per_token(shared, torch.float32) == 5 * bytes_per_token(spec, torch.float32)
