"""GPT-J against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"rotary_dim": 8, "n_inner": 48},
        {"tie_word_embeddings": True, "layer_norm_epsilon": 0.1},
        {"activation_function": "relu"},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("gptj", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("gptj", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("gptj", 1e-5, dtype=torch.float32, wide=False, **TINY)
