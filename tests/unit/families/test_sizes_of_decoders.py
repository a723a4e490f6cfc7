"""Published sizes, counted on the meta device from the family's spec alone."""

import pytest
import torch

from orrery.families import load_family

BLOOM = {
    "560M": ({"hidden_size": 1024, "n_layer": 24, "n_head": 16}, 559_214_592),
    "7B1": ({"hidden_size": 4096, "n_layer": 30, "n_head": 32}, 7_069_016_064),
    "176B": ({"hidden_size": 14336, "n_layer": 70, "n_head": 112}, 176_247_271_424),
}


def count(family, config):
    """Return the number of parameters, a tied one once."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in load_family(family).spec(config).build(0).parameters())


@pytest.mark.parametrize("name", BLOOM)
def test_bloom(name):
    config, expected = BLOOM[name]
    assert count("bloom", config) == expected


PUBLISHED = {
    "openai-gpt": ("openai-gpt", {}, 116_534_784),
    "OPT-125M": ("opt", {}, 125_239_296),
    "OPT-350M": (
        "opt",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "ffn_dim": 4096,
            "num_attention_heads": 16,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
        331_196_416,
    ),
    "GPT-NeoX-20B": ("gpt_neox", {}, 20_554_567_680),
    "GPT-J-6B": ("gptj", {}, 6_050_882_784),
    "GPT-Neo-125M": (
        "gpt_neo",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]},
        125_198_592,
    ),
    "Phi-2": (
        "phi",
        {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32},
        2_779_683_840,
    ),
    "Phi-3-mini": ("phi3", {}, 3_821_079_552),
    "StableLM-3B-4E1T": ("stablelm", {}, 2_795_443_200),
    "StarCoder2-3B": ("starcoder2", {}, 3_030_371_328),
    "MPT-7B": ("mpt", {"d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432}, 6_649_286_656),
    "Falcon-7B": ("falcon", {}, 6_921_720_704),
    "Falcon-40B": (
        "falcon",
        {
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name):
    family, config, expected = PUBLISHED[name]
    assert count(family, config) == expected
