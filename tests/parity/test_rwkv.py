"""RWKV-4 against transformers, which computes its recurrence token by token."""

import pytest
import torch

from tests.parity.helper import assert_parity, error, pair, random_ids

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 3,
    "context_length": 64,
    "rescale_every": 0,
    "use_cache": False,  # with one the reference writes into what its gradients need
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"attention_hidden_size": 24, "tie_word_embeddings": True},
        {"layer_norm_epsilon": 1e-3},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("rwkv", 1e-9, **{**TINY, **corner})


def test_float32():
    assert_parity("rwkv", 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize("every", [1, 2, 6])
def test_a_stream_that_the_reference_halves(every):
    both = pair("rwkv", **{**TINY, "num_hidden_layers": 5, "rescale_every": every})
    ids = random_ids(3, 9)
    with torch.no_grad():
        assert error(both.ours.logits(ids), both.reference(ids).logits) < 1e-9
