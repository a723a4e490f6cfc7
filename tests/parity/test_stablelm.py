"""StableLM against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"use_parallel_residual": True, "use_qkv_bias": True},
        {"use_parallel_residual": True, "qk_layernorm": True, "num_key_value_heads": 2, "layer_norm_eps": 0.1},
        {"qk_layernorm": True, "tie_word_embeddings": True, "partial_rotary_factor": 1.0, "rope_theta": 500.0},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("stablelm", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("stablelm", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("stablelm", 1e-5, dtype=torch.float32, wide=False, **TINY)
