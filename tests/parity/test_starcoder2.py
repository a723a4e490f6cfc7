"""StarCoder 2 against transformers."""

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


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"sliding_window": 5, "norm_epsilon": 0.1},
        {"use_bias": False, "tie_word_embeddings": False, "sliding_window": 1, "head_dim": 12},
        {"num_key_value_heads": 1, "hidden_act": "relu", "rope_theta": 999999.4420358813},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("starcoder2", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    # No window: padding beyond one sees nothing, and there the reference's float64 mask overflows its float32 softmax.
    assert_parity("starcoder2", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("starcoder2", 1e-5, dtype=torch.float32, wide=False, **TINY)
