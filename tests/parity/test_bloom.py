"""BLOOM against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {"hidden_size": 32, "n_layer": 2, "n_head": 4}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"n_head": 8, "layer_norm_epsilon": 0.1},
        {"hidden_size": 36, "n_head": 6},
        {"tie_word_embeddings": False},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("bloom", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("bloom", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("bloom", 1e-5, dtype=torch.float32, wide=False, **TINY)
