"""MPNet (Song et al. 2020): BERT's stack with relative positions beside absolute ones, and without token types.

Peculiar to it: a bias on the scores by buckets of the distance, one table for all layers, as T5's, whose 32 buckets its
code has written out; absolute positions begin at row 2; RoBERTa's heads. Sentence vectors are often made of it
(all-mpnet-base).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _bert, _parts, _roberta
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.positions.relative import BothWays, RelativeBias
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "MPNetForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    key: value
    for key, value in {**_roberta.DEFAULTS, "vocab_size": size(30527)}.items()
    if key not in ("type_vocab_size", "classifier_dropout", "pad_token_id")
}
TINY = {key: value for key, value in _roberta.TINY.items() if key != "type_vocab_size"}
_BUCKETS, _FURTHEST, _OFFSET = 32, 128, 2
_FIXED = {**_bert.FIXED, "relative_attention_num_buckets": _BUCKETS}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mpnet", config, DEFAULTS, fixed=_FIXED, ignored=_bert.IGNORED)
    return Encoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"] - _OFFSET,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=_stack(c),
        heads=_roberta.heads(c, ARCHITECTURE, c["hidden_dropout_prob"]),
    )


def _stack(c: Config) -> Stack.Spec:
    branches = _bert.branches(c, position="relative")
    block = _parts.sequential(branches, out=_bert.norm(c), dropout=c["hidden_dropout_prob"])
    stack = _bert.stack(c, offset=_OFFSET)
    buckets = BothWays(count=_BUCKETS, furthest=_FURTHEST)
    relative = RelativeBias.Spec(heads=c["num_attention_heads"], buckets=buckets)
    return replace(
        stack,
        blocks=repeat(block, c["num_hidden_layers"]),
        positions={**stack.positions, "relative": relative},
    )


_PARTS = (
    *((f"attention.attn.{x}", f"attention.branch.{x}") for x in "qkv"),
    ("attention.attn.o", "attention.branch.out"),
    ("attention.LayerNorm", "attention.out"),
    ("intermediate.dense", "feed_forward.branch.up"),
    ("output.dense", "feed_forward.branch.down"),
    ("output.LayerNorm", "feed_forward.out"),
)


def _rules(base: str) -> tuple[Rule, ...]:
    """Return the rules of the stack."""
    return (
        *_bert.embedding_rules(base),
        *renames(f"{base}encoder.layer.{{i}}", "stack.blocks.{i}", _PARTS),
        rename(f"{base}encoder.relative_attention_bias.weight", "stack.positions.relative.table.weight"),
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _roberta.rules(config, ARCHITECTURE, _rules, "mpnet.")


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _roberta.old(spec(config).heads, config, ARCHITECTURE, _rules, "mpnet.")
