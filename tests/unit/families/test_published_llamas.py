"""Keys in the published files of Llama's descendants are understood, those of their day too; sizes are a law."""

import pytest

from orrery.families import load_family

QWEN = {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}
GEMMA = {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}
PUBLISHED = {
    "Mistral 7B v0.3": ("mistral", {"sliding_window": None, "rope_theta": 1e6}),
    "Qwen 2.5": ("qwen2", {**QWEN, "use_mrope": False}),
    "Qwen 3": ("qwen3", {**QWEN, "sliding_window": None}),
    "Gemma": ("gemma", {"hidden_act": "gelu", "hidden_activation": None}),
    "Gemma 2": ("gemma2", {**GEMMA, "cache_implementation": "hybrid"}),
    "Gemma 3": (
        "gemma3_text",
        {
            "attn_logit_softcapping": None, "cache_implementation": "hybrid", "sliding_window": 512,
            "sliding_window_pattern": 6, "rope_local_base_freq": 10000,
        },
    ),
    "OLMo, April 2024": ("olmo", {"clip_qkv": 8.0}),
    "OLMo 2": ("olmo2", {"rope_theta": 500000}),
    "Granite 3.3": (
        "granite",
        {
            "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0, "logits_scaling": 16.0,
            "residual_multiplier": 0.22, "rope_theta": 1e7,
        },
    ),
    "Command R": ("cohere", {"model_max_length": 131072, "pretraining_tp": 1, "rope_theta": 8e6}),
    "Command R+": ("cohere", {"logit_scale": 0.8333333333333334, "rope_theta": 75e6, "use_qk_norm": True}),
    "SmolLM3": ("smollm3", {"no_rope_layers": [1, 1, 1, 0] * 9, "pretraining_tp": 2, "rope_theta": 5e6}),
    "GLM-4": ("glm4", {"partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5}),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_is_understood(name):
    family, config = PUBLISHED[name]
    assert load_family(family).spec({"model_type": family, **config}).head
