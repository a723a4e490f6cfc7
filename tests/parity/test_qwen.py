"""Qwen 2 and Qwen 3 (dense) against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}
WINDOWS = {"use_sliding_window": True, "sliding_window": 5}
KINDS = ["qwen2", "qwen3"]
CORNERS = [
    ("qwen2", {}),
    ("qwen2", {**WINDOWS, "max_window_layers": 1, "tie_word_embeddings": True}),
    ("qwen2", {**WINDOWS, "layer_types": ["sliding_attention", "full_attention"]}),
    ("qwen3", {"head_dim": 12, "rms_norm_eps": 0.1}),
    ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
    ("qwen3", {**WINDOWS, "max_window_layers": 0}),
]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", KINDS)
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **TINY)


@pytest.mark.parametrize("kind", KINDS)
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_that_is_switched_off_is_none(kind):
    stack = load_family(kind).spec({**TINY, "sliding_window": 5, "max_window_layers": 0}).stack
    assert [mask.window for mask in stack.masks.values()] == [None]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"layer_types": ["full_attention", "linear_attention"]}, "unknown 'linear_attention'"),
        ({"layer_types": ["full_attention"]}, "lists 1 layers, num_hidden_layers is 2"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "no length"),
    ],
)
def test_layer_kinds_that_cannot_be_read_are_refused(config, message):
    with pytest.raises(ModelFileError, match=message):
        load_family("qwen2").spec({**TINY, **config})
