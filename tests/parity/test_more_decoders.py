"""Decoders of 2022 to 2026 that are put together of parts that others have, at what is peculiar to each."""

import pytest

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity

LONG = {
    "rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0], "short_mscale": 1.2,
    "long_mscale": 1.2, "original_max_position_embeddings": 40,
}  # fmt: skip
CORNERS = [
    ("apertus", {"attention_bias": True}),
    ("bamba", {"attention_bias": True, "mlp_bias": True, "mamba_conv_bias": False}),
    ("cohere2", {"head_dim": 6, "attention_bias": True}),
    ("codegen", {"n_inner": 20}),
    ("diffllama", {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 6, "attention_bias": True}),
    ("ernie4_5_moe", {"use_bias": True, "tie_word_embeddings": False, "moe_norm_min": 0.4}),
    ("exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 3}),
    ("glm4_moe", {"use_qk_norm": False, "attention_bias": True, "n_group": 2, "n_shared_experts": 2}),
    (
        "falcon_h1",
        {
            "mamba_rms_norm": True, "mamba_norm_before_gate": False, "attention_bias": True, "mlp_bias": True,
            "projectors_bias": True, "mamba_conv_bias": False, "mamba_d_ssm": None,
        },
    ),
    ("falcon_h1", {"mamba_rms_norm": True, "mamba_proj_bias": True, "head_dim": 6, "tie_word_embeddings": True}),
    ("gpt_bigcode", {"multi_query": False, "scale_attn_weights": False}),
    ("granitemoehybrid", {"num_local_experts": 0, "position_embedding_type": None, "tie_word_embeddings": False}),
    ("helium", {"attention_bias": True, "mlp_bias": True}),
    ("lfm2", {"conv_bias": True, "conv_L_cache": 4, "block_ffn_dim_multiplier": 1.3}),
    ("minimax_m2", {}),
    ("ministral3", {"sliding_window": 5}),
    ("nanochat", {"attention_bias": True, "final_logit_softcapping": None}),
    ("nemotron", {"attention_bias": True, "mlp_bias": True, "partial_rotary_factor": 1.0}),
    ("nemotron_h", {"mlp_bias": True, "routed_scaling_factor": 2.5}),
    ("olmo3", {"attention_bias": True}),
    ("phimoe", {"rope_scaling": LONG, "attention_bias": False}),
    (
        "qwen3_next",
        {"attention_bias": True, "norm_topk_prob": False, "mlp_only_layers": [0], "tie_word_embeddings": True},
    ),
    (
        "recurrent_gemma",
        {"block_types": ["attention", "recurrent"], "attention_bias": True, "lru_width": None, "head_dim": 12},
    ),
    ("seed_oss", {"attention_out_bias": True, "mlp_bias": True}),
    ("zamba2", {"use_shared_attention_adapter": False, "num_key_value_heads": 2, "add_bias_linear": True}),
    (
        "zamba2",
        {
            "use_mem_rope": False, "num_mem_blocks": 1, "hidden_act": "silu", "mamba_expand": 3, "time_step_min": 0.2,
            "layers_block_type": ["linear_attention", "hybrid", "hybrid", "linear_attention"],
        },
    ),
    ("vaultgemma", {"attn_logit_softcapping": None, "attention_bias": True}),
]  # fmt: skip


QUICKEST = {"codegen", "cohere2", "exaone4", "gpt_bigcode", "ministral3", "nanochat", "olmo3"}
"""Those that take less than two seconds and are peculiar in more than what a law already holds."""


@pytest.mark.parametrize(
    ("kind", "corner"),
    [pytest.param(*case, id=case[0], marks=() if case[0] in QUICKEST else pytest.mark.long) for case in CORNERS],
)
def test_float64(kind, corner):
    tiny = {key: value for key, value in load_family(kind).TINY.items() if key != "vocab_size"}
    assert_parity(kind, 1e-9, **{**tiny, **corner})


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("codegen", {"n_head": 6}, "n_head = 6 is not divisible by 4"),
        ("codegen", {"rotary_dim": 8}, "codegen: rotary_dim = 8 of head_dim = 6"),
        ("gptj", {"rotary_dim": 3}, "gptj: rotary_dim = 3 of head_dim = 8"),
        ("diffllama", {"num_key_value_heads": 1}, "num_key_value_heads = 1 makes no pairs"),
        ("diffllama", {"num_attention_heads": 6, "num_key_value_heads": 4}, "num_attention_heads = 6 is not divisible"),
        ("diffllama", {"attention_dropout": 0.1}, "attention_dropout = 0.1 is not supported"),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, "says nothing without layer_types"),
        ("mellum", {"mlp_layer_types": ["dense"]}, "mlp_layer_types lists 1 layers, num_hidden_layers is 2"),
        ("minimax_m2", {"rotary_dim": 5}, "rotary_dim = 5 of head_dim = 8"),
        ("ministral3", {"rope_parameters": {"rope_type": "default"}}, "llama_4_scaling_beta = None"),
        ("nanochat", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "'yarn', a rotary scaling, is not known"),
        ("nemotron_h", {"layers_block_type": ["mlp", "rnn"]}, "has the unknown .*rnn"),
        ("nemotron_h", {"moe_latent_size": 8}, "moe_latent_size = 8 is not supported"),
        ("phimoe", {"num_experts_per_tok": 1}, "SparseMixer chooses two"),
        ("phimoe", {"rope_scaling": {**LONG, "long_mscale": 1.5}}, "short_mscale = 1.2 and long_mscale = 1.5"),
        ("bamba", {"mamba_d_head": 3}, "they are the same channels|mamba_n_heads . mamba_d_head = 4 . 3"),
        ("falcon_h1", {"mamba_d_head": 5}, "mamba_d_ssm = 24, and mamba_n_heads . mamba_d_head = 4 . 5"),
        ("falcon_h1", {"ssm_multipliers": [1.0] * 4}, "ssm_multipliers = .* is not 5 numbers"),
        ("falcon_h1", {"mlp_multipliers": [1.0, True]}, "mlp_multipliers = .* is not 2 numbers"),
        ("granitemoehybrid", {"layer_types": ["rnn", "mamba"]}, "layer_types has the unknown rnn"),
        ("lfm2", {"layer_types": ["conv"]}, "layer_types lists 1 layers"),
        ("m2m_100", {"d_model": 27}, "d_model = 27 makes no two pairs"),
        ("qwen3_next", {"layer_types": ["linear_attention", "rnn"]}, "layer_types has the unknown rnn"),
        ("qwen3_next", {"layer_types": ["full_attention"]}, "layer_types lists 1 layers, num_hidden_layers is 2"),
        ("qwen3_next", {"linear_num_key_heads": 3}, "linear_num_value_heads = 4 is not divisible by .* = 3"),
        ("recurrent_gemma", {"block_types": ["recurrent", "rnn"]}, "block_types has the unknown .*rnn"),
        ("recurrent_gemma", {"block_types": []}, "block_types has the unknown"),
        ("recurrent_gemma", {"lru_width": 30}, "lru_width = 30 is not divisible by num_attention_heads = 4"),
        ("recurrent_gemma", {"intermediate_size": 1}, "intermediate_size = 1 is half a channel"),
        ("zamba2", {"layers_block_type": ["hybrid", "rnn", "mamba", "mamba"]}, "has the unknown rnn"),
        ("zamba2", {"layers_block_type": ["hybrid"]}, "lists 1 layers, num_hidden_layers is 4"),
        ("zamba2", {"hybrid_layer_ids": [1]}, r"hybrid_layer_ids = \[1\], and layers_block_type says \[0, 2, 3\]"),
        ("zamba2", {"num_key_value_heads": 2}, "num_key_value_heads = 2 beside num_attention_heads = 4"),
        ("zamba2", {"n_mamba_heads": 6}, "mamba_expand . hidden_size = 32, and n_mamba_heads = 6"),
        ("zamba2", {"tie_word_embeddings": False}, "tie_word_embeddings = False is not supported"),
        ("recurrent_gemma", {"embeddings_scale_by_sqrt_dim": False}, "embeddings_scale_by_sqrt_dim = False"),
        ("gpt_neo", {"attention_types": [[["global", "local"], 2]]}, "gpt_neo: 2 layers"),
        ("gpt_neo", {"attention_types": [[["global", "sideways"], 1]]}, "gpt_neo: 2 layers"),
        ("mpt", {"attn_config": {"qk_ln": True}}, "mpt: attn_config.*qk_ln"),
        ("mpt", {"attn_config": {"alibi": False}}, "mpt: attn_config.*alibi"),
        ("mpt", {"attn_config": {"prefix_lm": True}}, "mpt: attn_config.*prefix_lm"),
        ("mpt", {"attn_config": {"unheard_of": 1}}, "mpt: attn_config.*unheard_of"),
        ("openai-gpt", {"afn": "gelu_new"}, "afn = 'gelu_new'"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers lists 1 layers, num_hidden_layers is 2"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(kind, change, says):
    with pytest.raises(ModelFileError, match=says):
        load_family(kind).spec({**load_family(kind).TINY, **change})


def test_an_interval_says_which_layers_of_qwen3_next_attend():
    family = load_family("qwen3_next")
    rest = {key: value for key, value in family.TINY.items() if key != "layer_types"}
    kinds = ["linear_attention", "linear_attention", "full_attention"] * 2
    spaced = {**rest, "num_hidden_layers": 6, "full_attention_interval": 3}
    assert family.spec(spaced) == family.spec({**rest, "num_hidden_layers": 6, "layer_types": kinds})


def test_letters_say_what_older_files_of_nemotron_h_have():
    family = load_family("nemotron_h")
    listed = {key: value for key, value in family.TINY.items() if key != "layers_block_type"}
    assert family.spec({**listed, "hybrid_override_pattern": "ME*-"}) == family.spec(family.TINY)


def test_the_older_form_of_a_partial_rotation_of_glm4():
    old, new = {"partial_rotary_factor": 0.25}, {"rope_parameters": {"partial_rotary_factor": 0.25}}
    family = load_family("glm4")
    assert family.spec({**family.TINY, **old}) == family.spec({**family.TINY, **new})
    assert family.spec(family.TINY).stack.positions["rotary"].width == 4
