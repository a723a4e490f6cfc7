"""Published files of Llama's descendants: every key of theirs is read, and their sizes come out."""

import pytest
import torch

from orrery.families import load_family


def shape(width, hidden, layers, heads, kv_heads, vocabulary, **more):
    return {
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        **more,
    }


QWEN = {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}
GEMMA = {"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}
PUBLISHED = {
    "Mistral 7B v0.3": (
        "mistral",
        shape(4096, 14336, 32, 32, 8, 32768, sliding_window=None, rope_theta=1e6),
        7_248_023_552,
    ),
    "Qwen 2.5 0.5B": (
        "qwen2",
        shape(896, 4864, 24, 14, 2, 151936, **QWEN, use_mrope=False, tie_word_embeddings=True),
        494_032_768,
    ),
    "Qwen 2.5 7B": ("qwen2", shape(3584, 18944, 28, 28, 4, 152064, **QWEN), 7_615_616_512),
    "Qwen 3 8B": ("qwen3", shape(4096, 12288, 36, 32, 8, 151936, head_dim=128, sliding_window=None), 8_190_735_360),
    "Gemma 2B": (
        "gemma",
        shape(2048, 16384, 18, 8, 1, 256000, head_dim=256, hidden_act="gelu", hidden_activation=None),
        2_506_172_416,
    ),
    "Gemma 2 2B": (
        "gemma2",
        shape(2304, 9216, 26, 8, 4, 256000, **GEMMA, cache_implementation="hybrid"),
        2_614_341_888,
    ),
    "Gemma 3 1B": (
        "gemma3_text",
        shape(
            1152, 6912, 26, 4, 1, 262144, head_dim=256, attn_logit_softcapping=None, cache_implementation="hybrid",
            sliding_window=512, sliding_window_pattern=6, rope_local_base_freq=10000,
        ),
        999_885_952,
    ),
    "OLMo 7B, April 2024": (
        "olmo",
        shape(4096, 11008, 32, 32, 32, 50304, clip_qkv=8.0, max_position_embeddings=4096),
        6_888_095_744,
    ),
    "OLMo 2 7B": ("olmo2", shape(4096, 11008, 32, 32, 32, 100352, rope_theta=500000), 7_298_617_344),
    "Granite 3.3 8B": (
        "granite",
        shape(
            4096, 12800, 40, 32, 8, 49159, attention_multiplier=0.0078125, embedding_multiplier=12.0,
            logits_scaling=16.0, residual_multiplier=0.22, rope_theta=1e7, tie_word_embeddings=True,
        ),
        8_170_864_640,
    ),
    "Command R": (
        "cohere",
        shape(8192, 22528, 40, 64, 64, 256000, model_max_length=131072, pretraining_tp=1, rope_theta=8e6),
        34_980_831_232,
    ),
    "Command R+": (
        "cohere",
        shape(12288, 33792, 64, 96, 8, 256000, logit_scale=0.8333333333333334, rope_theta=75e6, use_qk_norm=True),
        103_810_674_688,
    ),
    "SmolLM3 3B": (
        "smollm3",
        shape(2048, 11008, 36, 16, 4, 128256, no_rope_layers=[1, 1, 1, 0] * 9, pretraining_tp=2, rope_theta=5e6),
        3_075_098_624,
    ),
    "GLM-4 9B": (
        "glm4",
        shape(4096, 13696, 40, 32, 2, 151552, head_dim=128, partial_rotary_factor=0.5, rms_norm_eps=1e-5),
        9_400_279_040,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name):
    family, config, expected = PUBLISHED[name]
    with torch.device("meta"):
        model = load_family(family).spec(config).build(0)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
