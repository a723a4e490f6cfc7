"""Published configurations of encoders, with the keys of the years they were written in, are understood."""

import pytest

from orrery.errors import ModelFileError
from orrery.families import load_family

BASE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "position_embedding_type": "absolute",
    "gradient_checkpointing": False,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
MULTILINGUAL = {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
}
FIRST_YEARS = {"pruned_heads": {}, "torchscript": False, "finetuning_task": "sst-2", "num_labels": 2}
ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "vocab_size": 50265}
DISTILBERT = {
    "activation": "gelu",
    "attention_dropout": 0.1,
    "dim": 768,
    "dropout": 0.1,
    "hidden_dim": 3072,
    "n_heads": 12,
    "n_layers": 6,
    "sinusoidal_pos_embds": False,
    "tie_weights_": True,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
}
ALBERT = {
    "classifier_dropout_prob": 0.1,
    "down_scale_factor": 1,
    "embedding_size": 128,
    "gap_size": 0,
    "hidden_act": "gelu_new",
    "inner_group_num": 1,
    "net_structure_type": 0,
    "num_hidden_groups": 1,
    "num_memory_blocks": 0,
}
MODERNBERT = {
    "classifier_pooling": "mean",
    "deterministic_flash_attn": False,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "layer_norm_eps": 1e-5,
    "local_attention": 128,
    "local_rope_theta": 10000.0,
    "norm_eps": 1e-5,
    "position_embedding_type": "absolute",
    "reference_compile": True,
    "repad_logits_with_grad": False,
    "sparse_pred_ignore_index": -100,
    "sparse_prediction": False,
}


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("bert", {**BASE, **MULTILINGUAL}),
        ("bert", {**BASE, **FIRST_YEARS, "architectures": ["BertForSequenceClassification"]}),
        ("roberta", {**BASE, **ROBERTA}),
        ("xlm-roberta", {**BASE, **ROBERTA, "output_past": True}),
        ("distilbert", {**DISTILBERT, **FIRST_YEARS, "architectures": ["DistilBertForSequenceClassification"]}),
        ("albert", {**BASE, **ALBERT}),
        (
            "electra",
            {**BASE, "embedding_size": 768, "summary_type": "first", "architectures": ["ElectraForPreTraining"]},
        ),
        ("modernbert", MODERNBERT),
    ],
    ids=str,
)
def test_is_understood(family, config):
    assert load_family(family).spec({"model_type": family, **config}).heads


@pytest.mark.parametrize("key", ["is_decoder", "add_cross_attention"])
def test_an_encoder_that_writes_is_refused_by_name(key):
    with pytest.raises(ModelFileError, match=f"{key} = True is not supported"):
        load_family("bert").spec({**BASE, key: True})


def test_relative_positions_in_bert_are_refused_by_name():
    with pytest.raises(ModelFileError, match="position_embedding_type = 'relative_key' is not supported"):
        load_family("bert").spec({**BASE, "position_embedding_type": "relative_key"})
