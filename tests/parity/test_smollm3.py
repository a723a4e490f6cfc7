"""SmolLM3 against transformers."""

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
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "no_rope_layer_interval": 2,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"no_rope_layers": [0, 1, 1], "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
        {"use_sliding_window": True, "sliding_window": 5},
        {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("smollm3", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("smollm3", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("smollm3", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_a_layer_that_is_not_listed_is_refused():
    with pytest.raises(ModelFileError, match="no_rope_layers lists 1 layers, num_hidden_layers is 2"):
        load_family("smollm3").spec({**TINY, "no_rope_layers": [1]})
