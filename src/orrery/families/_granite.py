"""What the Granites share: multipliers of the stream, of each branch, of the scores and of the logits."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.checkpoints.layouts import Stacked
from orrery.checkpoints.rules import Rule, renames
from orrery.families import _decoders, _mixture, _parts
from orrery.families._config import Config
from orrery.families._keys import positive
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Scale
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import repeat

DEFAULTS: Mapping[str, Any] = {
    "embedding_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "attention_multiplier": positive(1.0),
    "logits_scaling": positive(1.0),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}


def attention(c: Config, **fields: Any) -> MultiHeadAttention.Spec:
    """Return the attention, whose scores are multiplied; the keywords are fields of it."""
    scoring = ScoreSettings(scale=c["attention_multiplier"], dropout=c["attention_dropout"])
    return _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), scoring=scoring, **fields)


def decoder(c: Config, feed_forward: ModuleSpec) -> Decoder.Spec:
    """Return the architecture with this feed-forward network in every layer."""
    norm, softer = RMSNorm.Spec(eps=c["rms_norm_eps"]), Scale.Spec(factor=c["residual_multiplier"])
    block = _parts.sequential({"attention": attention(c), "feed_forward": feed_forward}, pre=norm, post=softer)
    return around(c, repeat(block, c["num_hidden_layers"]), norm)


def around(c: Config, blocks: Sequence[Block.Spec], norm: RMSNorm.Spec, **fields: Any) -> Decoder.Spec:
    """Return the model around blocks; the keywords are fields of its stack."""
    louder = Scale.Spec(factor=c["embedding_multiplier"])
    stack = _decoders.stack(c, blocks, norm, enter=louder, **fields)
    return _decoders.decoder(c, stack, cap=Scale.Spec(factor=1 / c["logits_scaling"]))


def expert_rules(number: int) -> tuple[Rule, ...]:
    """Return the rules of the mixtures, whose experts are one tensor, gate before up."""

    def stacked(name: str, *parts: str) -> Rule:
        each = tuple(f"{_mixture.OURS}.experts.{x}.{part}.weight" for x in range(number) for part in parts)
        return Rule(f"{_mixture.SPARSE}.{name}.weight", each, Stacked(len(parts)))

    if not number:
        return ()
    return (
        *renames(_mixture.SPARSE, _mixture.OURS, [("router.layer", "router.linear")]),
        stacked("input_linear", "gate", "up"),
        stacked("output_linear", "down"),
    )
