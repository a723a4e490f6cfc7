"""MPNet against transformers, with every head."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity
from tests.parity.test_bert import TINY as BERT

TINY = {key: value for key, value in BERT.items() if key != "type_vocab_size"} | {"pad_token_id": 1}


@pytest.mark.parametrize("corner", [{}, {"tie_word_embeddings": False, "hidden_act": "relu"}], ids=str)
def test_float64(corner):
    assert_encoder_parity("mpnet", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    "head",
    ["Model", "ForSequenceClassification"]
    + [pytest.param(f"For{head}", marks=pytest.mark.long) for head in ("TokenClassification", "QuestionAnswering")],
)
def test_every_head(head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity("mpnet", 1e-9, auto=f"MPNet{head}", **TINY, **labels)


def test_float32():
    assert_encoder_parity("mpnet", 1e-5, dtype=torch.float32, wide=False, **TINY)
