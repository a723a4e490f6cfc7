"""Falcon against transformers, in its three generations."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
FALCON_40B = {"new_decoder_architecture": True, "num_kv_heads": 2}
RW = {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        FALCON_40B,
        {**FALCON_40B, "num_ln_in_parallel_attn": 1, "tie_word_embeddings": False, "ffn_hidden_size": 40},
        {"multi_query": False, "bias": True, "layer_norm_epsilon": 0.1, "activation": "relu"},
        {"parallel_attn": False, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("falcon", 1e-9, **TINY, **corner)


@pytest.mark.parametrize("corner", [{}, {"num_attention_heads": 6, "hidden_size": 36}], ids=str)
def test_alibi(corner):
    """The reference's eager kernel adds ALiBi twice, in the mask and to the scores; its sdpa kernel adds it once."""
    assert_parity("falcon", 1e-9, kernel="sdpa", **{**TINY, **RW, **corner})


def test_without_replacing_the_casts():
    assert_parity("falcon", 1e-6, wide=False, **TINY, **FALCON_40B)


def test_float32():
    assert_parity("falcon", 1e-5, dtype=torch.float32, wide=False, **TINY, **FALCON_40B)
