"""GPT-Neo against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 1]],
    "max_position_embeddings": 64,
    "window_size": 5,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"attention_types": [[["local"], 2]], "window_size": 1},
        {"attention_types": [[["local"], 1], [["global"], 2]], "num_layers": 3, "window_size": 20},
        {"intermediate_size": 48, "tie_word_embeddings": False, "layer_norm_epsilon": 0.1},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("gpt_neo", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("gpt_neo", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("gpt_neo", 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize("types", [[[["global", "local"], 2]], [[["global", "sideways"], 1]]], ids=str)
def test_kinds_of_attention_must_be_known_and_one_a_layer(types):
    with pytest.raises(ModelFileError, match="gpt_neo: 2 layers"):
        load_family("gpt_neo").spec({**TINY, "attention_types": types})
