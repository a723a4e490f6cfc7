"""Mistral against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity, pair

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "sliding_window": 5,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"sliding_window": 1},
        {"sliding_window": None, "head_dim": 24},
        {"tie_word_embeddings": True, "num_key_value_heads": 4},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("mistral", 1e-9, **{**TINY, **corner})


def test_without_replacing_the_casts():
    assert_parity("mistral", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("mistral", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_the_default_cache_holds_a_window():
    both = pair("mistral", **TINY)
    ids = torch.arange(3, 33)[None]
    sizes = set()
    with torch.no_grad():
        _, session = both.ours.start(ids[:, :6], capacity=30)
        for t in range(6, 30):
            both.ours.step(ids[:, t : t + 1], session)
            sizes.add(session.bytes())
    slots, layers, keys_and_values, channels = 5 + 1, 2, 2, 2 * 8  # a spare slot takes the padding
    assert sizes == {slots * layers * keys_and_values * channels * 8}


def test_a_window_of_nothing_is_refused():
    with pytest.raises(ModelFileError, match="a window of 0 tokens"):
        load_family("mistral").spec({"sliding_window": 0})
