"""DeBERTa v1 and v2 against transformers."""

import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from orrery.errors import ModelFileError
from orrery.families import deberta_v2
from orrery.nn.positions.relative_embeddings import LogBuckets
from tests.parity.encoders import assert_encoder_parity

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"type_vocab_size": 2},
        {"position_biased_input": False, "pos_att_type": "c2p|p2c"},
        {"max_relative_positions": 4, "layer_norm_eps": 0.1},
        {"pos_att_type": ["p2c"], "legacy": False},
        {"pos_att_type": ["c2p"], "hidden_act": "relu"},
        {"pos_att_type": None},
        {"relative_attention": False},
    ],
    ids=str,
)
def test_v1_in_float64(corner):
    assert_encoder_parity("deberta", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"position_buckets": 4},
        {"position_buckets": 6, "max_relative_positions": 12, "norm_rel_ebd": "layer_norm", "legacy": False},
        {"position_buckets": 8, "share_att_key": True, "position_biased_input": False},
        {"max_relative_positions": 4, "share_att_key": True, "pos_att_type": ["p2c"], "type_vocab_size": 2},
        {"relative_attention": False, "pos_att_type": None},
        {"conv_kernel_size": 3, "conv_act": "gelu", "position_buckets": 8},
        {"conv_kernel_size": 5, "conv_groups": 2},
    ],
    ids=str,
)
def test_v2_in_float64(corner):
    assert_encoder_parity("deberta-v2", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    ("head", "setting"),
    [
        ("Model", {}),
        ("ForSequenceClassification", {"num_labels": 3}),
        ("ForSequenceClassification", {"num_labels": 1, "pooler_hidden_act": "tanh"}),
        ("ForTokenClassification", {"num_labels": 3}),
        ("ForQuestionAnswering", {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["Deberta", "DebertaV2"])
def test_every_head(kind, head, setting):
    name = {"Deberta": "deberta", "DebertaV2": "deberta-v2"}[kind]
    assert_encoder_parity(name, 1e-9, auto=f"{kind}{head}", **TINY, **setting)


@pytest.mark.parametrize("kind", ["deberta", "deberta-v2"])
def test_without_replacing_the_casts(kind):
    assert_encoder_parity(kind, 1e-6, wide=False, **TINY)


@pytest.mark.parametrize("kind", ["deberta", "deberta-v2"])
def test_float32(kind):
    assert_encoder_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)


@pytest.mark.parametrize(("buckets", "furthest"), [(256, 512), (16, 64), (8, 64), (4, 64), (6, 12), (32, 128)])
def test_every_distance_has_the_bucket_of_the_reference(buckets, furthest):
    """The reference takes float32 logarithms: in the published setting (256, 512) no seam depends on it."""
    distances = torch.arange(-2 * furthest, 2 * furthest + 1)
    expected = make_log_bucket_position(distances, buckets, furthest).long()
    rule = LogBuckets(reach=buckets, furthest=furthest)
    assert torch.equal(rule.shrink(distances), expected)
    assert torch.equal(rule.of(distances), (expected + buckets).clamp(0, 2 * buckets - 1))


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"attention_head_size": 5}, "attention_head_size"),
        ({"pos_att_type": "p2p"}, "pos_att_type"),
        ({"pos_att_type": "c2p|c2p"}, "pos_att_type"),
        ({"position_buckets": 96}, "position_buckets"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"embedding_size": 16}, "embedding_size"),
        ({"pooler_hidden_size": 16}, "pooler_hidden_size"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(setting, named):
    with pytest.raises(ModelFileError, match=named):
        deberta_v2.spec({**deberta_v2.TINY, **setting})
