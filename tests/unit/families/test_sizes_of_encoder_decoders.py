"""Published sizes of encoder-decoders and of what reads images, counted without a weight in memory."""

import pytest

from orrery.accounting.parameters import parameters
from orrery.families import load_family


def size(family, **config):
    """Return how many parameters are trained, a tied one counted once."""
    return parameters(load_family(family).spec(config), trained=True)


@pytest.mark.parametrize(
    ("width", "hidden", "layers", "heads", "head_width", "expected"),
    [
        (512, 2048, 6, 8, 64, 60_506_624),
        (768, 3072, 12, 12, 64, 222_903_552),
        (1024, 4096, 24, 16, 64, 737_668_096),
        (1024, 16384, 24, 32, 128, 2_851_598_336),
        (1024, 65536, 24, 128, 128, 11_307_321_344),
    ],
    ids=["small", "base", "large", "3B", "11B"],
)
def test_t5(width, hidden, layers, heads, head_width, expected):
    shape = {"d_model": width, "d_ff": hidden, "num_layers": layers, "num_heads": heads, "d_kv": head_width}
    assert size("t5", **shape) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((768, 6, 12, 3072), 139_420_416),
        ((1024, 12, 16, 4096), 406_291_456),
    ],
    ids=["base", "large"],
)
def test_bart(shape, expected):
    width, layers, heads, hidden = shape
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in {"layers": layers, "attention_heads": heads, "ffn_dim": hidden}.items()
    }
    assert size("bart", d_model=width, **sides) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [({}, 63_082_496), ({"d_model": 1024, "d_ff": 4096, "num_heads": 16}, 214_245_376)],
    ids=["base", "big"],
)
def test_the_original_transformer(shape, expected):
    assert size("transformer", **shape) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({}, 86_567_656),
        (
            {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
            304_326_632,
        ),
    ],
    ids=["base", "large"],
)
def test_vit_of_1000_classes(shape, expected):
    assert size("vit", **shape, num_labels=1000) == expected


def test_a_captioner_of_base_sizes():
    decoder = {"model_type": "gpt2", "is_decoder": True, "add_cross_attention": True}
    config = {"encoder": {"model_type": "vit"}, "decoder": decoder, "decoder_start_token_id": 50256}
    assert size("vision_encoder_decoder", **config) == 239_195_904
