"""BERT against transformers, with every head."""

import pytest
import torch

from orrery.nn.embeddings import TokenTypeEmbedding
from orrery.nn.heads import Pooler
from orrery.nn.masks import Full
from tests.parity.encoders import assert_encoder_parity

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"tie_word_embeddings": False},
        {"hidden_act": "relu", "num_attention_heads": 1},
        {"layer_norm_eps": 0.1, "type_vocab_size": 3},
    ],
    ids=str,
)
def test_float64(corner):
    assert_encoder_parity("bert", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    "head",
    [
        "Model",
        "ForPreTraining",
        "ForNextSentencePrediction",
        "ForSequenceClassification",
        "ForTokenClassification",
        "ForQuestionAnswering",
    ],
)
def test_every_head(head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity("bert", 1e-9, auto=f"Bert{head}", **TINY, **labels)


def test_without_replacing_the_casts():
    assert_encoder_parity("bert", 1e-6, wide=False, **TINY)


def test_float32():
    assert_encoder_parity("bert", 1e-5, dtype=torch.float32, wide=False, **TINY)


def test_the_helper_notices_lost_token_types(monkeypatch):
    monkeypatch.setattr(TokenTypeEmbedding, "forward", lambda self, ids, token_types=None: self.token(ids))
    with pytest.raises(AssertionError, match="first at embedded"):
        assert_encoder_parity("bert", 1e-9, **TINY)


def test_the_helper_notices_a_second_head_that_is_wrong(monkeypatch):
    monkeypatch.setattr(Pooler, "forward", lambda self, x, real=None: self.transform(x[:, -1]))
    with pytest.raises(AssertionError, match="seq_relationship_logits differs"):
        assert_encoder_parity("bert", 1e-9, auto="BertForPreTraining", **TINY)


def test_the_helper_notices_padding_that_is_read(monkeypatch):
    seen = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    monkeypatch.setattr(Full, "allows", lambda self, query, key: seen[0].expand(3, 14, 14))
    with pytest.raises(AssertionError, match="right padding"):
        assert_encoder_parity("bert", 1e-9, **TINY)
