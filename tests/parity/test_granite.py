"""Granite against transformers."""

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
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.4,
    "attention_multiplier": 0.2,
    "logits_scaling": 2.5,
}


@pytest.mark.parametrize(
    "corner",
    [{}, {"num_key_value_heads": None, "tie_word_embeddings": True}, {"attention_bias": True, "mlp_bias": True}],
    ids=str,
)
def test_float64(corner):
    assert_parity("granite", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("granite", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("granite", 1e-5, dtype=torch.float32, wide=False, **TINY)
