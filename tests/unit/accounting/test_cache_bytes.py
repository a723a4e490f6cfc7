"""Bytes of a cache by formula: equal to published numbers and to what live caches allocate."""

from dataclasses import replace

import pytest
import torch

from orrery.accounting.cache import bytes_per_token, cache_bytes
from orrery.families import load_family
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
