"""ALBERT against transformers, with every head."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity
from tests.parity.test_bert import TINY as BERT

TINY = {**BERT, "embedding_size": 16, "num_hidden_layers": 3}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"num_hidden_groups": 2, "tie_word_embeddings": False},
        {"inner_group_num": 2, "num_hidden_groups": 3, "num_hidden_layers": 4},
        {"embedding_size": 32, "hidden_act": "relu"},
    ],
    ids=str,
)
def test_float64(corner):
    assert_encoder_parity("albert", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    "head",
    ["Model", "ForPreTraining", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"],
)
def test_every_head(head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity("albert", 1e-9, auto=f"Albert{head}", **TINY, **labels)


def test_without_replacing_the_casts():
    assert_encoder_parity("albert", 1e-6, wide=False, **TINY)


def test_float32():
    assert_encoder_parity("albert", 1e-5, dtype=torch.float32, wide=False, **TINY)
