"""DeepSeek-V2 and V3 against transformers."""

import pytest
import torch

from tests.parity.helper import assert_parity

TINY = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "first_k_dense_replace": 1,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "routed_scaling_factor": 1.7,
    "n_group": 4,
    "topk_group": 2,
    "max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 500.0}
BOTH = [
    {},
    {"tie_word_embeddings": True, "attention_bias": True},
    {"q_lora_rank": None, "first_k_dense_replace": 0, "rms_norm_eps": 0.1},
    {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3}},
]
GREEDY = {"n_shared_experts": 2, "mlp_bias": True, "rope_parameters": {**YARN, "mscale_all_dim": 1.0}}
V2 = [{}, GREEDY, {"norm_topk_prob": True}]
V3 = [{"rope_interleave": False}, {"norm_topk_prob": False, "n_shared_experts": 2, "n_group": 1, "topk_group": 1}]


@pytest.mark.parametrize("corner", [*({"topk_method": "group_limited_greedy", **c} for c in BOTH), *V2], ids=str)
def test_v2_in_float64(corner):
    assert_parity("deepseek_v2", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("corner", [*BOTH, *V3], ids=str)
def test_v3_in_float64(corner):
    assert_parity("deepseek_v3", 1e-9, **{**TINY, **corner})


@pytest.mark.parametrize("kind", ["deepseek_v2", "deepseek_v3"])
def test_without_replacing_the_casts(kind):
    assert_parity(kind, 1e-6, wide=False, **TINY)


@pytest.mark.parametrize("kind", ["deepseek_v2", "deepseek_v3"])
def test_float32(kind):
    assert_parity(kind, 1e-5, dtype=torch.float32, wide=False, **TINY)
