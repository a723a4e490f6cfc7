"""DistilBERT against transformers, with every head."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity

TINY = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}


@pytest.mark.parametrize(
    "corner", [{}, {"tie_word_embeddings": False}, {"activation": "relu", "sinusoidal_pos_embds": True}], ids=str
)
def test_float64(corner):
    assert_encoder_parity("distilbert", 1e-9, **TINY, **corner)


@pytest.mark.parametrize(
    "head", ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
)
def test_every_head(head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity("distilbert", 1e-9, auto=f"DistilBert{head}", **TINY, **labels)


def test_without_replacing_the_casts():
    assert_encoder_parity("distilbert", 1e-6, wide=False, **TINY)


def test_float32():
    assert_encoder_parity("distilbert", 1e-5, dtype=torch.float32, wide=False, **TINY)
