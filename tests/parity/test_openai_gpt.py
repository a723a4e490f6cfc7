"""The first GPT against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


@pytest.mark.parametrize(
    "corner",
    [{}, {"afn": "relu", "layer_norm_epsilon": 0.1}, {"afn": "silu"}, {"tie_word_embeddings": False}],
    ids=str,
)
def test_float64(corner):
    assert_parity("openai-gpt", 1e-9, **TINY, **corner)


def test_without_replacing_the_casts():
    assert_parity("openai-gpt", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("openai-gpt", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_an_unknown_activation_is_refused():
    with pytest.raises(ModelFileError, match="afn = 'gelu_new'"):
        load_family("openai-gpt").spec({**TINY, "afn": "gelu_new"})
