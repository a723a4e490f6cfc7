"""Jamba against transformers: states and keys in one model, and experts."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 4,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_d_state": 5,
    "mamba_dt_rank": 3,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"num_experts": 1, "tie_word_embeddings": True},
        {"mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_expand": 3, "mamba_d_conv": 2},
        {"mamba_dt_rank": "auto", "attn_layer_period": 1, "attn_layer_offset": 0},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("jamba", 1e-9, **{**TINY, **corner})


def test_float32():
    assert_parity("jamba", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_an_offset_beyond_its_period_is_refused():
    with pytest.raises(ModelFileError, match="attn_layer_offset = 4 is not below attn_layer_period = 3"):
        load_family("jamba").spec({**load_family("jamba").TINY, "attn_layer_period": 3, "attn_layer_offset": 4})
