"""Phi-3 against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"num_key_value_heads": 2, "sliding_window": 5},
        {"tie_word_embeddings": True, "rms_norm_eps": 0.1, "partial_rotary_factor": 0.5},
        {"num_key_value_heads": 1, "hidden_act": "gelu", "rope_theta": 500.0},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("phi3", 1e-9, **TINY, **corner)


def test_without_replacing_the_casts():
    assert_parity("phi3", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("phi3", 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize("kind", ["longrope", "su", "yarn", "linear"])
def test_other_rotary_scalings_are_refused(kind):
    with pytest.raises(ModelFileError, match=f"phi3: rotary scaling '{kind}'"):
        load_family("phi3").spec({**TINY, "rope_scaling": {"type": kind, "factor": 2.0}})
