"""Gemma 1, 2 and 3 (text) against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from orrery.nn.attention.kernels import eager, sdpa
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}
SMALL = {
    "sliding_window": 5,
    "query_pre_attn_scalar": 20,
    "attn_logit_softcapping": 0.7,
    "final_logit_softcapping": 2.0,
}
LOCAL = {"sliding_window": 5, "query_pre_attn_scalar": 20, "sliding_window_pattern": 2}
TINIES = {"gemma": TINY, "gemma2": {**TINY, **SMALL}, "gemma3_text": {**TINY, **LOCAL}}
CORNERS = [
    ("gemma", {"num_key_value_heads": 1, "head_dim": 12}),
    ("gemma", {"hidden_act": "gelu", "tie_word_embeddings": False, "attention_bias": True}),
    ("gemma2", {}),
    ("gemma2", {"attn_logit_softcapping": None, "attention_bias": True, "num_hidden_layers": 3}),
    ("gemma2", {"final_logit_softcapping": None, "layer_types": ["full_attention"] * 2, "tie_word_embeddings": False}),
    ("gemma3_text", {"final_logit_softcapping": 2.0}),
    ("gemma3_text", {"num_hidden_layers": 3, "attention_bias": True}),
    (
        "gemma3_text",
        {
            "layer_types": ["full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            },
        },
    ),
]


@pytest.mark.parametrize(("kind", "corner"), CORNERS, ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINIES[kind], **corner})


@pytest.mark.parametrize("kind", TINIES)
def test_without_replacing_the_casts(kind):
    # One layer: the reference's casts move the logits of two by 0.4e-6 to 1.0e-6, of one by 0.5e-6 at most (8 seeds).
    assert_parity(kind, 1e-6, wide=False, **{**TINIES[kind], "num_hidden_layers": 1})


@pytest.mark.parametrize("kind", TINIES)
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINIES[kind])


def test_the_model_chooses_the_kernel_that_can_cap():
    capped, plain = (load_family("gemma2").spec({**TINY, "attn_logit_softcapping": c}).build(0) for c in (50.0, None))
    assert (capped.kernel, plain.kernel) == (eager, sdpa)


def test_seeing_both_ways_is_refused():
    load_family("gemma").spec({**TINY, "use_bidirectional_attention": False})
    with pytest.raises(ModelFileError, match="use_bidirectional_attention = True is not supported"):
        load_family("gemma").spec({**TINY, "use_bidirectional_attention": True})


def test_the_older_form_of_two_rotary_settings():
    family, scaling = load_family("gemma3_text"), {"rope_type": "linear", "factor": 8.0}
    old = family.spec({**TINY, "rope_scaling": scaling, "rope_theta": 500.0, "rope_local_base_freq": 20.0})
    nested = {"full_attention": {**scaling, "rope_theta": 500.0}, "sliding_attention": {"rope_theta": 20.0}}
    assert old == family.spec({**TINY, "rope_parameters": nested})
    with pytest.raises(ModelFileError, match="unknown keys factor, rope_type"):
        family.spec({**TINY, "rope_parameters": scaling})
