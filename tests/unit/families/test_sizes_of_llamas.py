"""Published sizes of Llama and its descendants, counted on the meta device from the family's spec alone."""

import pytest
import torch

from orrery.families import load_family


def llama(width, hidden, layers, heads, kv_heads=None, vocabulary=32_000, tied=False):
    return {
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


LLAMA = {
    "LLaMA 7B": (llama(4096, 11008, 32, 32), 6_738_415_616),
    "LLaMA 13B": (llama(5120, 13824, 40, 40), 13_015_864_320),
    "LLaMA 33B": (llama(6656, 17920, 60, 52), 32_528_943_616),
    "LLaMA 65B": (llama(8192, 22016, 80, 64), 65_285_660_672),
    "Llama 2 70B": (llama(8192, 28672, 80, 64, 8), 68_976_648_192),
    "Llama 3 8B": (llama(4096, 14336, 32, 32, 8, 128_256), 8_030_261_248),
    "Llama 3 70B": (llama(8192, 28672, 80, 64, 8, 128_256), 70_553_706_496),
    "Llama 3.1 405B": (llama(16384, 53248, 126, 128, 8, 128_256), 405_853_388_800),
    "Llama 3.2 1B": (llama(2048, 8192, 16, 32, 8, 128_256, tied=True), 1_235_814_400),
    "Llama 3.2 3B": (llama(3072, 8192, 28, 24, 8, 128_256, tied=True), 3_212_749_824),
}


def count(family, config):
    """Return the number of parameters, a tied one once."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in load_family(family).spec(config).build(0).parameters())


@pytest.mark.parametrize("name", LLAMA)
def test_llama(name):
    config, expected = LLAMA[name]
    assert count("llama", config) == expected


def test_mistral_7b_is_the_default():
    assert count("mistral", {}) == 7_241_732_096
