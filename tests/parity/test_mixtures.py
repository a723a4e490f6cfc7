"""Mixtral, Qwen 2 and 3 MoE and OLMoE against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 3,
    "max_position_embeddings": 64,
}
SMALL = {"num_experts": 8, "moe_intermediate_size": 12}
FAMILIES = {
    "mixtral": {**TINY, "num_local_experts": 6},
    "qwen2_moe": {**TINY, **SMALL, "shared_expert_intermediate_size": 20},
    "qwen3_moe": {**TINY, **SMALL, "head_dim": 10},
    "olmoe": {**TINY, "num_experts": 8},
}
SLIDING = {"use_sliding_window": True, "sliding_window": 5}
THREE = {"num_hidden_layers": 3}
CORNERS = {
    "mixtral": [{}, {"sliding_window": 5, "tie_word_embeddings": True, "head_dim": 10, "rms_norm_eps": 0.1}],
    "qwen2_moe": [
        {},
        {"norm_topk_prob": True, "qkv_bias": False, "tie_word_embeddings": True, "decoder_sparse_step": 2},
        {**THREE, **SLIDING, "max_window_layers": 2, "mlp_only_layers": [1]},
        {**SLIDING, "layer_types": ["full_attention", "sliding_attention"], "hidden_act": "gelu"},
    ],
    "qwen3_moe": [
        {},
        {"norm_topk_prob": True, "attention_bias": True, "tie_word_embeddings": True, **SLIDING},
        {**THREE, "mlp_only_layers": [0], "decoder_sparse_step": 2},
    ],
    "olmoe": [
        {},
        {"norm_topk_prob": True, "attention_bias": True, "tie_word_embeddings": True},
        {"clip_qkv": 0.3},
        {"clip_qkv": 0.05, "norm_topk_prob": True},
    ],
}


@pytest.mark.parametrize(("kind", "corner"), [(k, corner) for k, corners in CORNERS.items() for corner in corners])
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**FAMILIES[kind], **corner})


@pytest.mark.parametrize("kind", FAMILIES)
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **FAMILIES[kind])


@pytest.mark.parametrize("kind", FAMILIES)
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **FAMILIES[kind])


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("mixtral", {"router_jitter_noise": 0.1}, "router_jitter_noise"),
        ("qwen2", {"num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2}, "the configuration no length"),
        ("qwen2_moe", {"use_sliding_window": True, "sliding_window": 0}, "a window of 0 tokens"),
        ("qwen2_moe", {"layer_types": ["full_attention"]}, "lists 1 layers, num_hidden_layers is 2"),
        ("qwen2_moe", {"layer_types": ["linear_attention"] * 2}, "unknown 'linear_attention'"),
        ("deepseek_v2", {"topk_method": "noaux_tc", "num_experts_per_tok": 2}, "'noaux_tc' is not known"),
        ("deepseek_v2", {}, "num_experts_per_tok is missing"),
        ("deepseek_v3", {"quantization_config": {}}, "unknown key 'quantization_config'"),
    ],
)
def test_what_a_family_cannot_do_is_refused_by_name(kind, change, message):
    with pytest.raises(ModelFileError, match=message):
        load_family(kind).spec({**FAMILIES.get(kind, {}), **change})


@pytest.mark.parametrize(
    "config",
    [
        {"layer_types": ["sliding_attention", "full_attention"]},
        {"use_sliding_window": True, "sliding_window": None},
        {"use_sliding_window": True, "sliding_window": None, "layer_types": ["sliding_attention"] * 2},
        {"use_sliding_window": False, "sliding_window": 0, "layer_types": ["sliding_attention"] * 2},
    ],
    ids=str,
)
def test_a_window_of_qwen2_moe_that_has_no_length_bounds_nothing(config):
    rules = load_family("qwen2_moe")
    assert rules.spec({**FAMILIES["qwen2_moe"], **config}) == rules.spec(FAMILIES["qwen2_moe"])
