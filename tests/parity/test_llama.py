"""Llama against transformers: float64 with the reference's inner casts replaced, then as it is, then float32."""

import pytest
import torch

from tests.parity.helper import assert_parity, error, pair

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    "yarn, own temperature": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 0.7,
        "beta_fast": 24, "beta_slow": 2,
    },
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
    "longrope": {
        "rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.5], "long_factor": [1.0, 2.0, 3.5, 7.0],
        "original_max_position_embeddings": 3, "factor": 4.0,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 1},
        {"num_key_value_heads": 4},
        {"head_dim": 24},
        {"attention_bias": True, "mlp_bias": True},
        {"hidden_act": "gelu"},
        {"rms_norm_eps": 0.1},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("llama", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("scaling", SCALINGS, ids=str)
def test_every_rotary_scaling(scaling):
    assert_parity("llama", 1e-9, **TINY, rope_parameters={"rope_theta": 500.0, **SCALINGS[scaling]})


def test_without_replacing_the_casts():
    assert_parity("llama", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("llama", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_dynamic_scaling_beyond_the_trained_length():
    """A full forward of n tokens turns at the rates of n; cached decoding equals it at the same capacity."""
    config = {**TINY, "max_position_embeddings": 8, "rope_parameters": {**SCALINGS["dynamic"], "rope_theta": 500.0}}
    both = pair("llama", **config)
    ids = torch.randint(3, 97, (2, 14), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = both.reference(ids).logits
        assert error(both.ours.logits(ids), expected) < 1e-9
        logits, session = both.ours.start(ids[:, :4], capacity=14)
        stepped = both.ours.step(ids[:, 4:], session)
    assert error(torch.cat([logits[:, None], stepped], 1), expected[:, 3:]) < 1e-9
