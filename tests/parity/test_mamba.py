"""Mamba, Falcon Mamba and Mamba-2 against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

SMALL = {"hidden_size": 32, "state_size": 5, "num_hidden_layers": 2}
TINY = {
    "mamba": SMALL,
    "falcon_mamba": SMALL,
    "mamba2": {**SMALL, "num_heads": 4, "head_dim": 16, "n_groups": 2, "chunk_size": 4},
}
CORNERS = [
    ("mamba", {}),
    ("mamba", {"use_conv_bias": False, "hidden_act": "gelu", "conv_kernel": 3, "time_step_rank": 5}),
    ("mamba", {"use_bias": True}),
    ("mamba", {"expand": 3, "tie_word_embeddings": False, "layer_norm_epsilon": 0.1}),
    ("falcon_mamba", {}),
    ("falcon_mamba", {"mixer_rms_eps": 0.1, "intermediate_size": 48}),
    ("mamba2", {}),
    ("mamba2", {"use_conv_bias": False, "conv_kernel": 3, "n_groups": 1, "tie_word_embeddings": True}),
    ("mamba2", {"n_groups": 4, "num_heads": 8, "head_dim": 8, "layer_norm_epsilon": 0.1, "chunk_size": 256}),
    ("mamba2", {"time_step_limit": [0.6, 0.9]}),
]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINY[kind], **corner})


@pytest.mark.parametrize("kind", TINY)
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **{**TINY[kind], "num_hidden_layers": 1})


@pytest.mark.parametrize("kind", TINY)
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY[kind])
