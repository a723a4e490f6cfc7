"""XLM-R XL and XXL (Goyal et al. 2021): XLM-R with its norms in front.

Peculiar to it: LayerNorm in front of each branch and once at the end of the stack, none on the embeddings; nothing is
dropped behind the feed-forward network. Heads, ids and positions are RoBERTa's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, renames
from orrery.families import _bert, _parts, _roberta
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.block import Block
from orrery.nn.residual import Dropout
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "XLMRobertaXLForMaskedLM"
MODEL_TYPE = "xlm-roberta-xl"
DEFAULTS: Mapping[str, Any] = {
    **_roberta.DEFAULTS,
    "vocab_size": size(250880),
    "hidden_size": size(2560),
    "num_hidden_layers": size(36),
    "num_attention_heads": size(32),
    "intermediate_size": size(10240),
    "max_position_embeddings": 514,
    "type_vocab_size": size(1),
    "layer_norm_eps": 1e-5,
}
TINY = _roberta.TINY


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    return _roberta.spec(config, MODEL_TYPE, ARCHITECTURE, DEFAULTS, _stack)


def _stack(c: Config, *, offset: int) -> Stack.Spec:
    norm, dropout = _bert.norm(c), c["hidden_dropout_prob"]
    branches = _bert.branches(c)
    attention = _parts.sequential({"attention": branches["attention"]}, pre=norm, dropout=dropout)
    feed_forward = _parts.sequential({"feed_forward": branches["feed_forward"]}, pre=norm)
    block = Block.Spec(residuals={**attention.residuals, **feed_forward.residuals})
    return replace(
        _bert.stack(c, offset=offset),
        blocks=repeat(block, c["num_hidden_layers"]),
        start=Dropout.Spec(rate=dropout),
        final=norm,
    )


_PARTS = (
    ("attention.self_attn_layer_norm", "attention.pre"),
    ("attention.self.query", "attention.branch.q"),
    ("attention.self.key", "attention.branch.k"),
    ("attention.self.value", "attention.branch.v"),
    ("attention.output.dense", "attention.branch.out"),
    ("LayerNorm", "feed_forward.pre"),
    ("intermediate.dense", "feed_forward.branch.up"),
    ("output.dense", "feed_forward.branch.down"),
)


def _rules(base: str) -> tuple[Rule, ...]:
    """Return the rules of the stack."""
    return (
        *_bert.tables(base),
        *renames(f"{base}encoder.layer.{{i}}", "stack.blocks.{i}", _PARTS),
        *renames(f"{base}encoder", "stack", [("LayerNorm", "final")]),
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _roberta.rules(config, ARCHITECTURE, _rules)


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _roberta.old(spec(config).heads, config, ARCHITECTURE, _rules)
