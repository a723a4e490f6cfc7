"""Mamba and Falcon Mamba against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {"hidden_size": 32, "state_size": 5, "num_hidden_layers": 2}
CORNERS = [
    ("mamba", {}),
    ("mamba", {"use_conv_bias": False, "hidden_act": "gelu", "conv_kernel": 3, "time_step_rank": 5}),
    ("mamba", {"expand": 3, "tie_word_embeddings": False, "layer_norm_epsilon": 0.1}),
    ("falcon_mamba", {}),
    ("falcon_mamba", {"mixer_rms_eps": 0.1, "intermediate_size": 48}),
]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", ["mamba", "falcon_mamba"])
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **{**TINY, "num_hidden_layers": 1})


@pytest.mark.parametrize("kind", ["mamba", "falcon_mamba"])
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)
