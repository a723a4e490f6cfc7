"""GPT-NeoX against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"use_parallel_residual": False, "attention_bias": False},
        {"tie_word_embeddings": True, "layer_norm_eps": 0.1},
        {"rotary_pct": 1.0, "rotary_emb_base": 500, "hidden_act": "gelu_new"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("gpt_neox", 1e-9, **TINY, **corner)


def test_without_replacing_the_casts():
    assert_parity("gpt_neox", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("gpt_neox", 1e-5, dtype=torch.float32, wide=False, **TINY)
