"""Cohere's Command R against transformers."""

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
    "use_qk_norm": True,
    "logit_scale": 0.4,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"use_qk_norm": False, "tie_word_embeddings": False},
        {"num_key_value_heads": None, "attention_bias": True, "layer_norm_eps": 0.1},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("cohere", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("cohere", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("cohere", 1e-5, dtype=torch.float32, wide=False, **TINY)
