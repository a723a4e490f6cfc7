"""Golden numbers of size: what published models weigh, counted on specs without a single weight in memory."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.errors import OrreryError
from orrery.families import names
from orrery.laws.evidence import Evidence, SlideDiffers, exact
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Residual
from orrery.nn.stack import repeat
from orrery.planning.parameters import parameters
from orrery.planning.presets import gpt3, preset
from orrery.planning.published.gpt3 import wide_heads
from orrery.planning.published.sizes import COUNTED, PRESETS, SIZES, PublishedSize


def check() -> Iterator[Evidence]:
    """Count the parameters of published models."""
    for size in known():
        yield exact(f"parameters of {size.name}", size.family, counted(size), size.parameters + size.beside)
    for name, expected in PRESETS.items():
        yield exact(f"parameters of {name}", "", parameters(preset(name)), expected)
    count = parameters(wide_heads(gpt3(2048, 24, 16), heads=24, head_width=128))
    yield exact("parameters of GPT-3 XL, 24 heads of 128", "", count, 1_517_123_584)
    yield exact("parameters of nanoGPT's small character model", "gpt2", parameters(nanogpt()), 10_745_088)
    yield exact("GPT-3 13B of width 5140 is refused", "", int(refuses(5140, 40, 40)), 1)


def known() -> list[PublishedSize]:
    """Return the published models whose family is there."""
    there = names()
    return [size for size in (*SIZES, *COUNTED) if size.family in there]


def counted(size: PublishedSize) -> int:
    """Count what the file of a published model holds, each storage once."""
    return parameters(size.spec())


def slides() -> Iterator[SlideDiffers]:
    """List the sizes that a slide gives otherwise."""
    why = "50,257 tokens, 1,024 positions, biases and norms counted: 1.0 % more"
    yield SlideDiffers("G7 parameters of GPT-2 (2019)", "1542M", "1,557,611,200", why)
    why = "24 heads of 128 are 3,072 channels, the width is 2,048; width 2,048 throughout gives the slide's 1.3B"
    yield SlideDiffers("G5 GPT-3 XL", "24 heads of 128 at width 2,048", "1,315,723,264 or 1,517,123,584", why)
    why = "5,140 is not divisible by 40 heads; 5,120 is"
    yield SlideDiffers("G6 GPT-3 13B", "width 5,140", "width 5,120: 12,853,386,240", why)


def refuses(width: int, layers: int, heads: int) -> bool:
    """Say whether a shape is refused."""
    try:
        gpt3(width, layers, heads)
    except OrreryError:
        return True
    return False


def nanogpt() -> Decoder.Spec:
    """Return nanoGPT's character model: GPT-2 without any bias, 6 layers of 384, 65 characters."""
    spec = gpt3(384, 6, 6, context=256, vocabulary=65)
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
