"""UMT5 (Chung et al. 2023): mT5 with positions of their own in every layer.

Peculiar to it: each layer of either stack has its own table of biases by distance, where T5 has one a stack. As in mT5:
gated gelu. The published ones do not tie their head; one that is tied is scaled by ``1 / sqrt(D)``.

Differs from the reference, which ties whatever ``config.json`` says unless the file holds two tables: here
``tie_word_embeddings`` means what it says, and a file that holds more or less is refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import t5
from orrery.families._config import Config
from orrery.families._keys import size, token
from orrery.families._seq2seq import STACKS
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.stack import Stack

ARCHITECTURE = "UMT5ForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {
    **t5.DEFAULTS,
    "vocab_size": size(250112),
    "d_ff": size(1024),
    "num_layers": size(8),
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
    "decoder_start_token_id": token(0),
}
LEGACY_NAMES = t5.LEGACY_NAMES
TINY = {**t5.TINY, "num_layers": 2, "num_decoder_layers": 2}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    assembled = t5.assemble(_config(config))
    reader: Any = assembled.reader
    return replace(
        assembled, reader=replace(reader, stack=_own_positions(reader.stack)), decoder=_own_positions(assembled.decoder)
    )


def _own_positions(stack: Stack.Spec) -> Stack.Spec:
    """Return a stack whose layers have the biases of the whole one each for itself."""
    blocks, positions = [], {}
    for i, block in enumerate(stack.blocks):
        residual, name = block.residuals["attention"], f"relative_{i}"
        assert isinstance(residual.branch, MultiHeadAttention.Spec)
        positions[name] = stack.positions["relative"]
        attention = replace(residual, branch=replace(residual.branch, position=name))
        blocks.append(replace(block, residuals={**block.residuals, "attention": attention}))
    return replace(stack, blocks=tuple(blocks), positions=positions)


def _config(config: Mapping[str, Any]) -> Config:
    config = t5.settled(config, DEFAULTS["feed_forward_proj"])
    scale = {"scale_decoder_outputs": config.get("tie_word_embeddings") is not False}
    fixed, defaults = {**t5.FIXED, **scale}, {**DEFAULTS, **scale}
    return Config("umt5", config, defaults, fixed=fixed, ignored=t5.IGNORED, aliases=t5.ALIASES)


def INITIAL_STD(config: Mapping[str, Any]) -> Mapping[str, float]:  # noqa: N802 - how a family draws new matrices
    """Return what new matrices are drawn with, which is as T5's."""
    return t5.drawn(_config(config), config.get(t5.FACTOR, 1.0))


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, which are T5's with a table a layer."""
    shared = "positions.relative.table.weight"
    t5_rules = t5.rules(t5.settled(config, DEFAULTS["feed_forward_proj"])["is_gated_act"])
    tables = (
        rename(
            f"{side}.block.{{i}}.layer.0.SelfAttention.relative_attention_bias.weight",
            f"{stack}.positions.relative_{{i}}.table.weight",
        )
        for side, stack in STACKS.items()
    )
    return (*(rule for rule in t5_rules if not rule.ours[0].endswith(shared)), *tables)
