"""What BERT and its kin (RoBERTa, XLM-R, ELECTRA) have in common: the keys, the stack, and the names of its tensors."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _heads, _parts
from orrery.families._config import Config
from orrery.families._keys import number, size
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenTypeEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Chain, Dropout
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

BODY: Mapping[str, Any] = {
    "vocab_size": size(30522),
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "intermediate_size": size(3072),
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": size(2),
    "layer_norm_eps": 1e-12,
    "tie_word_embeddings": True,
    **_heads.DEFAULTS,
}
DEFAULTS: Mapping[str, Any] = {**BODY, "classifier_dropout": number(None)}
TINY: Mapping[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
}
FIXED: Mapping[str, Any] = {
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "pruned_heads": {},
}
IGNORED = ("pooler_*", "directionality")


def embed(c: Config) -> TokenTypeEmbedding.Spec:
    """Return the embeddings of tokens and token types."""
    return TokenTypeEmbedding.Spec(vocabulary=c["vocab_size"], token_types=c["type_vocab_size"])


def norm(c: Config) -> LayerNorm.Spec:
    """Return the LayerNorm that all parts share."""
    return LayerNorm.Spec(eps=c["layer_norm_eps"])


def branches(c: Config, position: str = "none") -> dict[str, ModuleSpec]:
    """Return the two branches of a block, with biases everywhere; ``position`` is that of the attention."""
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_attention_heads"],
        head_width=c.divide("hidden_size", "num_attention_heads"),
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_probs_dropout_prob"]),
        position=position,
        mask="full",
    )
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    return {"attention": attention, "feed_forward": feed_forward}


def block(c: Config) -> Block.Spec:
    """Return a post-LN block."""
    return _parts.sequential(branches(c), out=norm(c), dropout=c["hidden_dropout_prob"])


def stack(c: Config, *after: ModuleSpec, offset: int = 0, entry: int | None = None) -> Stack.Spec:
    """Return the stack.

    ``offset`` is the number of rows at the beginning of the position table that no token uses; ``entry`` the width of
    the embeddings where it is another than the blocks', and what stands ``after`` their norm then projects.
    """
    return Stack.Spec(
        blocks=repeat(block(c), c["num_hidden_layers"]),
        positions={"learned": LearnedPositions.Spec(length=c["max_position_embeddings"] - offset, offset=offset)},
        masks={"full": Full()},
        start=Chain.Spec(parts=(norm(c), Dropout.Spec(rate=c["hidden_dropout_prob"]), *after)),
        entry=entry,
    )


def classifier_dropout(c: Config) -> float:
    """Return the dropout before the labels: its own, else that of the blocks."""
    return float(c["hidden_dropout_prob"] if c["classifier_dropout"] is None else c["classifier_dropout"])


def tied(config: Mapping[str, Any]) -> bool:
    """Say whether the masked language model's head is the embedding table."""
    return bool(config.get("tie_word_embeddings", True))


def tables(base: str) -> tuple[Rule, ...]:
    """Return the rules of the tables of tokens, token types and positions."""
    pairs = (
        ("word_embeddings", "embed.token"),
        ("token_type_embeddings", "embed.segment"),
        ("position_embeddings", "stack.positions.learned.table"),
    )
    return tuple(rename(f"{base}embeddings.{theirs}.weight", f"{ours}.weight") for theirs, ours in pairs)


def embedding_rules(base: str) -> tuple[Rule, ...]:
    """Return the rules of the tables and of the norm of their sum."""
    return (*tables(base), *renames(f"{base}embeddings", "stack.start", (("LayerNorm", "0"),)))


REST = (
    ("attention.output.dense", "attention.branch.out"),
    ("attention.output.LayerNorm", "attention.out"),
    ("intermediate.dense", "feed_forward.branch.up"),
    ("output.dense", "feed_forward.branch.down"),
    ("output.LayerNorm", "feed_forward.out"),
)
"""The parts of a layer behind its pattern, theirs and ours."""


def block_rules(base: str) -> tuple[Rule, ...]:
    """Return the rules of the blocks."""
    return renames(
        f"{base}encoder.layer.{{i}}",
        "stack.blocks.{i}",
        (
            ("attention.self.query", "attention.branch.q"),
            ("attention.self.key", "attention.branch.k"),
            ("attention.self.value", "attention.branch.v"),
            *REST,
        ),
    )
