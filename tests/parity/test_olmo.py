"""OLMo 1 and 2 against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
KINDS = ["olmo", "olmo2"]
CORNERS = [
    ("olmo", {"num_key_value_heads": None}),
    ("olmo", {"clip_qkv": 0.8, "tie_word_embeddings": True}),
    ("olmo", {"clip_qkv": 0.8, "attention_bias": True}),
    ("olmo2", {}),
    ("olmo2", {"attention_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 0.1}),
]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", KINDS)
def test_without_replacing_the_casts(kind):
    # One layer: the reference's casts move OLMo's numbers by up to 0.9e-6; of two, by up to 2.4e-6 (8 seeds).
    assert_parity(kind, 1e-6, wide=False, **{**TINY, "num_hidden_layers": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)
