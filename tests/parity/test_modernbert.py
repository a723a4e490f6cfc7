"""ModernBERT against transformers, with every head."""

import pytest
import torch

from tests.parity.encoders import assert_encoder_parity

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "local_attention": 6,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"tie_word_embeddings": False, "decoder_bias": False, "hidden_activation": "relu"},
        {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True},
        {"global_attn_every_n_layers": 2, "global_rope_theta": 500.0, "local_rope_theta": 50.0, "local_attention": 3},
        {"layer_types": ["sliding_attention"] * 3 + ["full_attention"], "classifier_activation": "silu"},
    ],
    ids=str,
)
def test_float64(corner):
    assert_encoder_parity("modernbert", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize(
    ("head", "corner"),
    [
        ("Model", {}),
        ("ForSequenceClassification", {"num_labels": 3, "norm_bias": True}),
        ("ForSequenceClassification", {"num_labels": 3, "classifier_pooling": "mean"}),
        ("ForTokenClassification", {"num_labels": 3}),
        ("ForQuestionAnswering", {"classifier_bias": True}),
    ],
    ids=str,
)
def test_every_head(head, corner):
    assert_encoder_parity("modernbert", 1e-9, auto=f"ModernBert{head}", **TINY, **corner)


def test_without_replacing_the_casts():
    """Padding outside every window sees nothing, and there the reference's float64 mask overflows in its float32

    softmax: NaN, which the next layer spreads. So the windows are as wide as the rows.
    """
    assert_encoder_parity("modernbert", 1e-6, wide=False, **{**TINY, "local_attention": 40})


def test_float32():
    assert_encoder_parity("modernbert", 1e-5, dtype=torch.float32, wide=False, **TINY)
