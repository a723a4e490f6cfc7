"""RoBERTa, XLM-R and the larger XLM-R, whose norms stand in front, against transformers, with every head."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity
from tests.parity.test_bert import TINY as BERT

TINY = {**BERT, "type_vocab_size": 1, "pad_token_id": 1}
NAMES = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "xlm-roberta-xl": "XLMRobertaXL"}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"tie_word_embeddings": False, "type_vocab_size": 2},
        {"pad_token_id": 2, "hidden_act": "relu"},
    ],
    ids=str,
)
def test_float64(kind, corner):
    assert_encoder_parity(kind, 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize(
    "head", ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
)
def test_every_head(kind, head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity(kind, 1e-9, auto=f"{NAMES[kind]}{head}", **TINY, **labels)


@pytest.mark.parametrize("kind", NAMES)
def test_without_replacing_the_casts(kind):
    assert_encoder_parity(kind, 1e-6, wide=False, **TINY)


@pytest.mark.parametrize("kind", NAMES)
def test_float32(kind):
    assert_encoder_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)
