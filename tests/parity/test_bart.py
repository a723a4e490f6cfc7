"""BART, mBART, Pegasus and Marian against transformers."""

import pytest
import torch

from tests.parity.helper import assert_close, pair, random_ids
from tests.parity.seq2seq import assert_seq2seq_parity

TINY = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 40, "decoder_ffn_dim": 24, "max_position_embeddings": 24, "decoder_start_token_id": 5,
}  # fmt: skip
CORNERS = [
    ("bart", {}),
    ("bart", {"scale_embedding": True, "activation_function": "relu"}),
    ("mbart", {"scale_embedding": True}),
    ("mbart", {"decoder_start_token_id": None}),
    ("pegasus", {}),
    ("pegasus", {"scale_embedding": True, "activation_function": "relu"}),
    ("m2m_100", {}),
    ("marian", {"scale_embedding": True, "activation_function": "swish"}),
    ("marian", {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 107}),
]
FAMILIES = ["bart", "mbart", "pegasus", "marian"]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_seq2seq_parity(kind, 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", FAMILIES)
def test_without_replacing_the_casts(kind):
    assert_seq2seq_parity(kind, 1e-6, wide=False, **TINY)


@pytest.mark.parametrize("kind", FAMILIES)
def test_float32(kind):
    assert_seq2seq_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)


@torch.no_grad()
def test_the_published_base_model_has_neither_a_head_nor_a_prefix():
    both, source, target = pair("bart", auto="BartModel", **TINY), random_ids(2, 9), random_ids(2, 5, seed=2)
    expected = both.reference(source, decoder_input_ids=target).last_hidden_state
    assert_close("hidden", both, source, both.ours.hidden(source, target), expected, 1e-9)
