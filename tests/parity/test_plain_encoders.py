"""BERT and its kin against transformers: small ones with every head, and corners of their settings."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity

BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}
ROBERTA = {**BERT, "type_vocab_size": 1, "pad_token_id": 1}
TINY = {
    "albert": {**BERT, "embedding_size": 16, "num_hidden_layers": 3},
    "bert": BERT,
    "distilbert": {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64},
    "electra": {**BERT, "embedding_size": 16},
    "mpnet": {key: value for key, value in BERT.items() if key != "type_vocab_size"} | {"pad_token_id": 1},
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "xlm-roberta-xl": ROBERTA,
}
OF_ROBERTA = [{}, {"tie_word_embeddings": False, "type_vocab_size": 2}, {"pad_token_id": 2, "hidden_act": "relu"}]
CORNERS = {
    "albert": [
        {},
        {"num_hidden_groups": 2, "tie_word_embeddings": False},
        {"inner_group_num": 2, "num_hidden_groups": 3, "num_hidden_layers": 4},
        {"embedding_size": 32, "hidden_act": "relu"},
    ],
    "bert": [
        {},
        {"tie_word_embeddings": False},
        {"hidden_act": "relu", "num_attention_heads": 1},
        {"layer_norm_eps": 0.1, "type_vocab_size": 3},
    ],
    "distilbert": [{}, {"tie_word_embeddings": False}, {"activation": "relu", "sinusoidal_pos_embds": True}],
    "electra": [{}, {"tie_word_embeddings": False, "hidden_act": "relu"}, {"embedding_size": 32}],
    "mpnet": [{}, {"tie_word_embeddings": False, "hidden_act": "relu"}],
    "roberta": OF_ROBERTA,
    "xlm-roberta": OF_ROBERTA,
    "xlm-roberta-xl": OF_ROBERTA,
}
CLASSES = {
    "albert": "Albert",
    "bert": "Bert",
    "distilbert": "DistilBert",
    "electra": "Electra",
    "mpnet": "MPNet",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "xlm-roberta-xl": "XLMRobertaXL",
}
HEADS = ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
OTHER_HEADS = {
    "albert": ["ForPreTraining"],
    "bert": ["ForPreTraining", "ForNextSentencePrediction"],
    "electra": ["ForPreTraining"],
}
LONG = {("mpnet", "ForTokenClassification"), ("mpnet", "ForQuestionAnswering")}
"""Cases of the tier of this name."""


@pytest.mark.parametrize(("kind", "corner"), [(kind, corner) for kind in TINY for corner in CORNERS[kind]], ids=str)
def test_float64(kind, corner):
    assert_encoder_parity(kind, 1e-9, **{**TINY[kind], **corner})


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        pytest.param(kind, head, marks=pytest.mark.long if (kind, head) in LONG else ())
        for kind in TINY
        for head in [*HEADS, *OTHER_HEADS.get(kind, [])]
    ],
)
def test_every_head(kind, head):
    labels = {} if "Question" in head else {"num_labels": 3}
    assert_encoder_parity(kind, 1e-9, auto=f"{CLASSES[kind]}{head}", **TINY[kind], **labels)


@pytest.mark.parametrize("kind", TINY)
def test_without_replacing_the_casts(kind):
    assert_encoder_parity(kind, 1e-6, wide=False, **TINY[kind])


@pytest.mark.parametrize("kind", TINY)
def test_float32(kind):
    assert_encoder_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY[kind])
