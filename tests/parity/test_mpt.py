"""MPT against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"d_model": 36, "n_heads": 6, "layer_norm_epsilon": 0.1},
        {"attn_config": {"softmax_scale": 0.2}},
        {"attn_config": {"clip_qkv": 0.3}},
        {"attn_config": {"alibi_bias_max": 16, "clip_qkv": 6.0}},
        {"attn_config": {"alibi_bias_max": 4}, "d_model": 40, "n_heads": 5},
        {"tie_word_embeddings": False, "d_model": 24, "n_heads": 3},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("mpt", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("mpt", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("mpt", 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize(
    "setting", [{"qk_ln": True}, {"alibi": False}, {"prefix_lm": True}, {"unheard_of": 1}], ids=str
)
def test_settings_of_the_attention_that_change_the_numbers_are_refused(setting):
    with pytest.raises(ModelFileError, match=f"mpt: attn_config.*{next(iter(setting))}"):
        load_family("mpt").spec({**TINY, "attn_config": setting})
