"""Decoders of one file of settings each against transformers: small ones, and corners of their settings."""

import pytest
import torch

from tests.parity.helper import assert_parity

SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = {**SHAPE, "num_key_value_heads": 2}
OPENAI = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
TINY = {
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "cohere": {**GROUPED, "use_qk_norm": True, "logit_scale": 0.4},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64},
    "glm4": {**GROUPED, "head_dim": 8},
    "gpt2": OPENAI,
    "gpt_neo": {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 64, "window_size": 5,
    },
    "gpt_neox": SHAPE,
    "gpt_oss": {
        **GROUPED, "intermediate_size": 12, "head_dim": 8, "num_local_experts": 5, "num_experts_per_tok": 2,
        "sliding_window": 5, "swiglu_limit": 0.8,
    },
    "gptj": {**OPENAI, "rotary_dim": 4},
    "granite": {
        **GROUPED, "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.2,
        "logits_scaling": 2.5,
    },
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "openai-gpt": OPENAI,
    "opt": {
        "hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 56, "num_attention_heads": 4,
        "max_position_embeddings": 64,
    },
    "phi": SHAPE,
    "smollm3": {**GROUPED, "no_rope_layer_interval": 2},
    "stablelm": {**SHAPE, "num_key_value_heads": 4},
    "starcoder2": GROUPED,
}  # fmt: skip
FALCON_40B = {"new_decoder_architecture": True, "num_kv_heads": 2}
FALCON_RW = {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}
OPT_350M = {"do_layer_norm_before": False, "word_embed_proj_dim": 24}
CORNERS = {
    "bloom": [
        {},
        {"n_head": 8, "layer_norm_epsilon": 0.1},
        {"hidden_size": 36, "n_head": 6},
        {"tie_word_embeddings": False},
    ],
    "cohere": [
        {},
        {"use_qk_norm": False, "tie_word_embeddings": False},
        {"num_key_value_heads": None, "attention_bias": True, "layer_norm_eps": 0.1},
    ],
    "falcon": [
        {},
        FALCON_40B,
        {**FALCON_40B, "num_ln_in_parallel_attn": 1, "tie_word_embeddings": False, "ffn_hidden_size": 40},
        {"multi_query": False, "bias": True, "layer_norm_epsilon": 0.1, "activation": "relu"},
        {"parallel_attn": False, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
    ],
    "glm4": [
        {},
        {"attention_bias": False, "tie_word_embeddings": True},
        {"head_dim": 12, "rms_norm_eps": 0.1, "partial_rotary_factor": 1.0},
    ],
    "gpt2": [
        {},
        {"n_inner": 48},
        {"tie_word_embeddings": False},
        {"activation_function": "relu"},
        {"scale_attn_weights": False},
    ],
    "gpt_neo": [
        {},
        {"attention_types": [[["local"], 2]], "window_size": 1},
        {"attention_types": [[["local"], 1], [["global"], 2]], "num_layers": 3, "window_size": 20},
        {"intermediate_size": 48, "tie_word_embeddings": False, "layer_norm_epsilon": 0.1},
    ],
    "gpt_neox": [
        {},
        {"use_parallel_residual": False, "attention_bias": False},
        {"tie_word_embeddings": True, "layer_norm_eps": 0.1},
        {"rotary_pct": 1.0, "rotary_emb_base": 500, "hidden_act": "gelu_new"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}},
    ],
    "gpt_oss": [
        {},
        {"tie_word_embeddings": True, "attention_bias": False, "num_key_value_heads": 1, "rms_norm_eps": 0.1},
        {"layer_types": ["full_attention", "sliding_attention"], "swiglu_alpha": 1.0, "swiglu_limit": 7.0},
        {"layer_types": ["full_attention"] * 2, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_parameters": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "truncate": False,
            "rope_theta": 500.0,
        }},
    ],
    "gptj": [
        {},
        {"rotary_dim": 8, "n_inner": 48},
        {"tie_word_embeddings": True, "layer_norm_epsilon": 0.1},
        {"activation_function": "relu"},
    ],
    "granite": [
        {},
        {"num_key_value_heads": None, "tie_word_embeddings": True},
        {"attention_bias": True, "mlp_bias": True},
    ],
    "mpt": [
        {},
        {"d_model": 36, "n_heads": 6, "layer_norm_epsilon": 0.1},
        {"attn_config": {"softmax_scale": 0.2}},
        {"attn_config": {"clip_qkv": 0.3}},
        {"attn_config": {"alibi_bias_max": 16, "clip_qkv": 6.0}},
        {"attn_config": {"alibi_bias_max": 4}, "d_model": 40, "n_heads": 5},
        {"tie_word_embeddings": False, "d_model": 24, "n_heads": 3},
    ],
    "olmo": [
        {"num_key_value_heads": None},
        {"clip_qkv": 0.8, "tie_word_embeddings": True},
        {"clip_qkv": 0.8, "attention_bias": True},
    ],
    "olmo2": [{}, {"attention_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 0.1}],
    "openai-gpt": [{}, {"afn": "relu", "layer_norm_epsilon": 0.1}, {"afn": "silu"}, {"tie_word_embeddings": False}],
    "opt": [
        {},
        OPT_350M,
        {"word_embed_proj_dim": 24, "tie_word_embeddings": False},
        {"enable_bias": False, "layer_norm_elementwise_affine": False, "activation_function": "gelu"},
        {"_remove_final_layer_norm": True},
    ],
    "phi": [
        {},
        {"qk_layernorm": True, "num_key_value_heads": 2, "layer_norm_eps": 0.1},
        {"tie_word_embeddings": True, "partial_rotary_factor": 0.25, "hidden_act": "relu"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
    ],
    "smollm3": [
        {},
        {"no_rope_layers": [0, 1, 1], "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
        {"use_sliding_window": True, "sliding_window": 5},
        {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    ],
    "stablelm": [
        {},
        {"use_parallel_residual": True, "use_qkv_bias": True},
        {"use_parallel_residual": True, "qk_layernorm": True, "num_key_value_heads": 2, "layer_norm_eps": 0.1},
        {"qk_layernorm": True, "tie_word_embeddings": True, "partial_rotary_factor": 1.0, "rope_theta": 500.0},
    ],
    "starcoder2": [
        {},
        {"sliding_window": 5, "norm_epsilon": 0.1},
        {"use_bias": False, "tie_word_embeddings": False, "sliding_window": 1, "head_dim": 12},
        {"num_key_value_heads": 1, "hidden_act": "relu", "rope_theta": 999999.4420358813},
    ],
}  # fmt: skip
UNREPLACED = {
    "falcon": FALCON_40B,
    "olmo": {"num_hidden_layers": 1},
    "olmo2": {"num_hidden_layers": 1},
    "opt": OPT_350M,
}
"""Where not all of TINY is compared with the reference's own casts.

They move the numbers of two layers of OLMo by up to 2.4e-6, of one by 0.9e-6 (8 seeds), and its float32 softmax moves
one gradient of OPT before its norms by 3e-7 to 1.1e-6. StarCoder has no window here: padding beyond one sees nothing,
and there the reference's float64 mask overflows its float32 softmax.
"""


@pytest.mark.parametrize(("kind", "corner"), [(kind, corner) for kind in TINY for corner in CORNERS[kind]], ids=str)
def test_float64(kind, corner):
    assert_parity(kind, 1e-9, **{**TINY[kind], **corner})


@pytest.mark.parametrize("corner", [{}, {"num_attention_heads": 6, "hidden_size": 36}], ids=str)
def test_alibi_of_falcon(corner):
    """The reference's eager kernel adds ALiBi twice, in the mask and to the scores; its sdpa kernel adds it once."""
    assert_parity("falcon", 1e-9, kernel="sdpa", **{**TINY["falcon"], **FALCON_RW, **corner})


@pytest.mark.parametrize("kind", TINY)
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **{**TINY[kind], **UNREPLACED.get(kind, {})})


@pytest.mark.parametrize("kind", TINY)
def test_float32(kind):
    corner = FALCON_40B if kind == "falcon" else {}
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY[kind], **corner)
