"""Presets: the sizes that papers print, and every kind of block at a tiny size, cached and whole."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.spec import from_json, to_json
from orrery.planning.parameters import parameters
from orrery.planning.presets import PRESETS, gopher, gpt3, lamda, palm, preset, transformer

PRINTED = {
    "gpt3-125m": "125.2M",
    "gpt3-350m": "355.9M",
    "gpt3-760m": "760.3M",
    "gpt3-1.3b": "1.316B",
    "gpt3-2.7b": "2.652B",
    "gpt3-6.7b": "6.658B",
    "gpt3-13b": "12.85B",
    "gpt3-175b": "174.6B",
    "palm-8b": "8.63B",
    "palm-62b": "62.50B",
    "palm-540b": "540.4B",
    "gopher-280b": "280B",
    "chinchilla-70b": "70B",
}
"""GPT-3: Table 2.1, with the digits of Table D.1; PaLM: Table 1; Gopher and Chinchilla: their names."""

TRANSFORMERS = {
    "65M": (512, 2048, 6, 8), "36M": (512, 2048, 2, 8), "50M": (512, 2048, 4, 8), "80M": (512, 2048, 8, 8),
    "28M": (256, 2048, 6, 8), "168M": (1024, 2048, 6, 8), "53M": (512, 1024, 6, 8), "90M": (512, 4096, 6, 8),
}  # fmt: skip
"""Vaswani et al. 2017, Table 3, base and row (C): width, hidden, layers, heads."""

GOPHERS = {"44M": (512, 8, 16, 32), "117M": (768, 12, 12, 64), "417M": (1536, 12, 12, 128), "1.4B": (2048, 24, 16, 128),
           "7.1B": (4096, 32, 32, 128)}  # fmt: skip
"""The smaller models of Rae et al. 2021, Table 1: width, layers, heads, channels of a head."""

TINY = {
    "gpt3": gpt3(24, 2, 3, vocabulary=61, context=48),
    "palm": palm(24, 2, 3, head_width=10, vocabulary=61, context=48),
    "gopher": gopher(24, 2, 3, head_width=10, vocabulary=61, context=48),
    "lamda": lamda(24, 2, 3, head_width=10, hidden=40, vocabulary=61, context=48),
}


def rounded(count, printed):
    """Return a count with as many digits after the point as were printed."""
    digits = len(printed[:-1].partition(".")[2])
    return f"{count / {'M': 1e6, 'B': 1e9}[printed[-1]]:.{digits}f}{printed[-1]}"


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_digits(name):
    assert rounded(parameters(preset(name)), PRINTED[name]) == PRINTED[name]


@pytest.mark.parametrize("name", PRESETS)
def test_contexts_are_those_of_the_papers(name):
    # 2,048 tokens: Brown et al. 2020, section 2.1; Chowdhery et al. 2022, section 5; Rae et al. 2021, section 3.1.
    assert preset(name).context == (512 if name.startswith("transformer") else 2048)


@pytest.mark.parametrize("printed", TRANSFORMERS)
def test_the_reading_of_the_transformer_gives_all_its_sizes_with_one_vocabulary(printed):
    """Table 3 belongs to about 41,000 rows of the table of pieces, the big model to 36,000; the text says 37,000."""
    assert rounded(parameters(transformer(*TRANSFORMERS[printed], vocabulary=41_000)), printed) == printed


def test_the_transformers_with_the_vocabulary_of_the_text():
    assert rounded(parameters(transformer(1024, 4096, 6, 16, vocabulary=36_000)), "213M") == "213M"
    for name, width, hidden, printed in (("base", 512, 2048, 65e6), ("big", 1024, 4096, 213e6)):
        attention, norm = 4 * width * width + 4 * width, 2 * width
        feed_forward = 2 * width * hidden + hidden + width
        block = 3 * attention + 2 * feed_forward + 5 * norm
        counted = parameters(preset(f"transformer-{name}"))
        assert counted == 37_000 * width + 6 * block
        assert abs(counted / printed - 1) < 0.03


@pytest.mark.parametrize("printed", GOPHERS)
def test_the_reading_of_gopher_gives_all_its_sizes(printed):
    width, layers, heads, head_width = GOPHERS[printed]
    assert rounded(parameters(gopher(width, layers, heads, head_width=head_width)), printed) == printed


def test_lamda_counts_without_its_embeddings():
    assert rounded(parameters(preset("lamda-137b")) - 32_000 * 8192, "137B") == "137B"


def test_formulas():
    """Squares of the width, written down by hand."""
    D, L = 18_432, 118
    palm_layer = 2 * D * 48 * 256 + 2 * D * 256 + 3 * D * 4 * D + D
    assert parameters(preset("palm-540b")) == 256_000 * D + L * palm_layer + D == 540_356_474_880
    D, L = 8192, 80
    assert parameters(preset("chinchilla-70b")) == 32_000 * D + L * (13 * D * D + 2 * D + 2 * D) + D
    D, L, E = 8192, 64, 128 * 128
    assert parameters(preset("lamda-137b")) == 32_000 * D + L * (4 * D * E + 3 * D * 65_536 + 2 * D) + D + 32 * 128


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json(name):
    assert from_json(to_json(preset(name))) == preset(name)


def random(spec):
    model = spec.build(0).double().eval()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return model


@pytest.mark.parametrize("kind", TINY)
@torch.no_grad()
def test_cached_equals_full(kind):
    model = random(TINY[kind])
    ids = torch.randint(61, (3, 14), generator=torch.Generator().manual_seed(1))
    logits, session = model.start(ids[:, :4], capacity=20)
    steps = [logits]
    for t in range(4, 14):
        stepped = model.step(ids[:, t : t + 1], session)
        steps.append(stepped[:, 0])
    torch.testing.assert_close(torch.stack(steps, 1), model.logits(ids)[:, 3:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", TINY)
@torch.no_grad()
def test_left_padded_equals_unpadded(kind):
    model = random(TINY[kind])
    ids = torch.randint(61, (1, 9), generator=torch.Generator().manual_seed(1))
    real = torch.arange(9)[None] >= 4
    torch.testing.assert_close(model.logits(ids, real=real)[:, 4:], model.logits(ids[:, 4:]), rtol=0, atol=1e-9)


@torch.no_grad()
def test_palm_adds_both_branches_of_one_norm_and_scales_its_logits():
    model = random(TINY["palm"])
    seen = {}
    ids = torch.arange(5)[None]
    logits = model.logits(ids, taps=lambda key, value: seen.setdefault(key, value))
    final = model.stack.final(seen["blocks.1.resid_post"])
    torch.testing.assert_close(logits, final @ model.embed.token.weight.T / 24**0.5, rtol=0, atol=1e-12)
    added = seen["blocks.0.resid_post"] - seen["blocks.0.resid_pre"]
    normed = model.stack.blocks[0].parallel.pre(seen["blocks.0.resid_pre"])
    mlp = model.stack.blocks[0].parallel.branch.feed_forward
    expected = mlp.down(torch.nn.functional.silu(mlp.gate(normed)) * mlp.up(normed))
    attended = model.stack.blocks[0].parallel.branch.attention.out(seen["blocks.0.attention.mixed"].mT.flatten(1, 2).mT)
    torch.testing.assert_close(added, expected + attended, rtol=0, atol=1e-12)


def test_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="no preset 'gpt5'"):
        preset("gpt5")
