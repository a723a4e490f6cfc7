"""gpt-oss against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "sliding_window": 5,
    "swiglu_limit": 0.8,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"tie_word_embeddings": True, "attention_bias": False, "num_key_value_heads": 1, "rms_norm_eps": 0.1},
        {"layer_types": ["full_attention", "sliding_attention"], "swiglu_alpha": 1.0, "swiglu_limit": 7.0},
        {"layer_types": ["full_attention"] * 2, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_parameters": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "truncate": False,
            "rope_theta": 500.0,
        }},
    ],
    ids=str,
)  # fmt: skip
def test_float64(corner):
    assert_parity("gpt_oss", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("gpt_oss", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("gpt_oss", 1e-5, dtype=torch.float32, wide=False, **TINY)
