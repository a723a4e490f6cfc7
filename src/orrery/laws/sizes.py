"""Golden numbers of size: what published models weigh, counted on specs without a single weight in memory."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from orrery.accounting.parameters import parameters
from orrery.errors import OrreryError
from orrery.families import load_family
from orrery.laws.evidence import Evidence, SlideDiffers, exact
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Identity, Residual
from orrery.nn.stack import repeat

GPT2 = {
    "GPT-2 small": ((768, 12, 12), 124_439_808),
    "GPT-2 medium": ((1024, 24, 16), 354_823_168),
    "GPT-2 large": ((1280, 36, 20), 774_030_080),
    "GPT-2 XL": ((1600, 48, 25), 1_557_611_200),
}
GPT3 = {
    "GPT-3 small": ((768, 12, 12), 125_226_240),
    "GPT-3 medium": ((1024, 24, 16), 355_871_744),
    "GPT-3 large": ((1536, 24, 16), 760_300_032),
    "GPT-3 XL, width 2048 throughout": ((2048, 24, 16), 1_315_723_264),
    "GPT-3 2.7B": ((2560, 32, 32), 2_651_553_280),
    "GPT-3 6.7B": ((4096, 32, 32), 6_658_404_352),
    "GPT-3 13B, width 5120": ((5120, 40, 40), 12_853_386_240),
    "GPT-3 175B": ((12288, 96, 96), 174_604_259_328),
}
LLAMA: dict[str, tuple[tuple[int, int, int, int, int, int, bool], int]] = {
    "Llama 7B": ((4096, 11008, 32, 32, 32, 32_000, False), 6_738_415_616),
    "Llama 13B": ((5120, 13824, 40, 40, 40, 32_000, False), 13_015_864_320),
    "Llama 33B": ((6656, 17920, 60, 52, 52, 32_000, False), 32_528_943_616),
    "Llama 65B": ((8192, 22016, 80, 64, 64, 32_000, False), 65_285_660_672),
    "Llama 2 70B": ((8192, 28672, 80, 64, 8, 32_000, False), 68_976_648_192),
    "Llama 3 8B": ((4096, 14336, 32, 32, 8, 128_256, False), 8_030_261_248),
    "Llama 3.2 1B, tied": ((2048, 8192, 16, 32, 8, 128_256, True), 1_235_814_400),
}


def check() -> Iterator[Evidence]:
    """Count the parameters of published models."""
    for table, context in ((GPT2, 1024), (GPT3, 2048)):
        for name, (shape, expected) in table.items():
            yield exact(f"parameters of {name}", "gpt2", parameters(gpt2(*shape, context)), expected)
    for name, (numbers, expected) in LLAMA.items():
        yield exact(f"parameters of {name}", "llama", parameters(llama(*numbers)), expected)
    yield exact("parameters of GPT (2018)", "gpt2", parameters(gpt_2018()), 116_534_784)
    found = parameters(wide_heads(gpt2(2048, 24, 16, 2048), heads=24, head_width=128))
    yield exact("parameters of GPT-3 XL, 24 heads of 128", "gpt2", found, 1_517_123_584)
    yield exact("parameters of nanoGPT's small character model", "gpt2", parameters(nanogpt()), 10_745_088)
    yield exact("GPT-3 13B of width 5140 is refused", "gpt2", int(refuses(5140, 40, 40)), 1)


def slides() -> Iterator[SlideDiffers]:
    """List the sizes that a slide gives otherwise."""
    why = "50,257 tokens, 1,024 positions, biases and norms counted: 1.0 % more"
    yield SlideDiffers("G7 parameters of GPT-2 (2019)", "1542M", f"{GPT2['GPT-2 XL'][1]:,}", why)
    why = "24 heads of 128 are 3,072 channels, the width is 2,048; width 2,048 throughout gives the slide's 1.3B"
    yield SlideDiffers("G5 GPT-3 XL", "24 heads of 128 at width 2,048", "1,315,723,264 or 1,517,123,584", why)
    why = "5,140 is not divisible by 40 heads; 5,120 is"
    yield SlideDiffers("G6 GPT-3 13B", "width 5,140", "width 5,120: 12,853,386,240", why)


def gpt2(width: int, layers: int, heads: int, context: int, vocabulary: int = 50_257) -> Decoder.Spec:
    """Return a spec of the GPT-2 kind."""
    return _spec(
        "gpt2",
        {"n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": context, "vocab_size": vocabulary},
    )


def llama(width: int, hidden: int, layers: int, heads: int, kv_heads: int, vocabulary: int, tied: bool) -> Decoder.Spec:
    """Return a spec of the Llama kind."""
    config = {
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }
    return _spec("llama", config)


def _spec(family: str, config: Mapping[str, Any]) -> Decoder.Spec:
    return cast(Decoder.Spec, load_family(family).spec(config))


def refuses(width: int, layers: int, heads: int) -> bool:
    """Say whether a shape is refused."""
    try:
        gpt2(width, layers, heads, 2048)
    except OrreryError:
        return True
    return False


def gpt_2018() -> Decoder.Spec:
    """Return GPT (2018): the norms follow the residuals, so none is left for the end."""
    spec = gpt2(768, 12, 12, context=512, vocabulary=40_478)
    return replace(spec, stack=replace(spec.stack, final=Identity.Spec()))


def wide_heads(spec: Decoder.Spec, heads: int, head_width: int) -> Decoder.Spec:
    """Return the spec with other heads: their channels need not add up to the width."""
    block = spec.stack.blocks[0]
    residual = block.residuals["attention"]
    assert isinstance(residual.branch, MultiHeadAttention.Spec)
    branch = replace(residual.branch, heads=heads, kv_heads=heads, head_width=head_width)
    changed = Block.Spec(residuals={**block.residuals, "attention": replace(residual, branch=branch)})
    return replace(spec, stack=replace(spec.stack, blocks=repeat(changed, len(spec.stack.blocks))))


def nanogpt() -> Decoder.Spec:
    """Return nanoGPT's character model: GPT-2 without any bias, 6 layers of 384, 65 characters."""
    spec = gpt2(384, 6, 6, context=256, vocabulary=65)
    norm = LayerNorm.Spec(bias=False)
    attention = MultiHeadAttention.Spec(heads=6, kv_heads=6, head_width=64, biases=Biases())
    feed_forward = MLP.Spec(hidden=4 * 384, bias=False)
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
        }
    )
    return replace(spec, stack=replace(spec.stack, blocks=repeat(block, 6), final=norm))
