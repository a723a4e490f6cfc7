"""T5 and mT5 against transformers."""

import pytest
import torch
from torch import nn

from tests.parity import oracle
from tests.parity.seq2seq import assert_seq2seq_parity

TINY = {
    "d_model": 32, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10,
}  # fmt: skip
CORNERS = [
    {},
    {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    {"feed_forward_proj": "gated-silu", "num_decoder_layers": 1, "decoder_start_token_id": 5},
    {"layer_norm_epsilon": 0.1, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128},
]


@pytest.fixture
def untied(monkeypatch):
    """Give the reference a head of its own, as loading a file of v1.1 does: its constructor ties whatever one says."""
    draw = oracle.randomise

    def randomise(model, seed):
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
        model.config.tie_word_embeddings = False
        draw(model, seed)

    monkeypatch.setattr(oracle, "randomise", randomise)


@pytest.mark.parametrize("corner", CORNERS, ids=str)
def test_float64(corner):
    assert_seq2seq_parity("t5", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", ["t5", "mt5"])
def test_a_head_of_its_own(untied, kind):
    both = assert_seq2seq_parity(
        kind, 1e-9, **TINY, feed_forward_proj="gated-gelu", tie_word_embeddings=False, scale_decoder_outputs=False
    )
    assert not both.ours.spec.head.tied


def test_multilingual():
    assert_seq2seq_parity("mt5", 1e-9, **TINY)


def test_without_replacing_the_casts():
    assert_seq2seq_parity("t5", 1e-6, wide=False, **TINY)


def test_float32():
    assert_seq2seq_parity("t5", 1e-5, dtype=torch.float32, wide=False, **TINY)
