"""GPT-2 against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"n_inner": 48},
        {"tie_word_embeddings": False},
        {"activation_function": "relu"},
        {"scale_attn_weights": False},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("gpt2", 1e-9, **TINY, **corner)


def test_without_replacing_the_casts():
    assert_parity("gpt2", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("gpt2", 1e-5, dtype=torch.float32, wide=False, **TINY)
