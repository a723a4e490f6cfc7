"""GLM-4 against transformers."""

import pytest
import torch

from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"attention_bias": False, "tie_word_embeddings": True},
        {"head_dim": 12, "rms_norm_eps": 0.1, "partial_rotary_factor": 1.0},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("glm4", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("glm4", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("glm4", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_the_older_form_of_a_partial_rotation():
    old, new = {"partial_rotary_factor": 0.25}, {"rope_parameters": {"partial_rotary_factor": 0.25}}
    family = load_family("glm4")
    assert family.spec({**TINY, **old}) == family.spec({**TINY, **new})
    assert family.spec(TINY).stack.positions["rotary"].width == 4
