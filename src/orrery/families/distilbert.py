"""DistilBERT (Sanh et al. 2019): half of BERT's layers, taught by the whole.

Peculiar to it: BERT's blocks under other names, without token types and without a pooler; a class's head has a
projection of its own with relu. Position tables that were set to sinusoids are read as what they are: tables.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _bert, _heads, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import TokenHead
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Chain, Dropout, Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "DistilBertForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(30522),
    "max_position_embeddings": 512,
    "n_layers": size(6),
    "n_heads": 12,
    "dim": size(768),
    "hidden_dim": size(3072),
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "activation": "gelu",
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "tie_word_embeddings": True,
    **_heads.DEFAULTS,
}
TINY = {"vocab_size": 61, "max_position_embeddings": 48, "n_layers": 2, "n_heads": 3, "dim": 24, "hidden_dim": 40}
_IGNORED = ("sinusoidal_pos_embds", "tie_weights_")


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("distilbert", config, DEFAULTS, fixed=_bert.FIXED, ignored=_IGNORED)
    width, norm, activation = c["dim"], LayerNorm.Spec(eps=1e-12), c.activation("activation")
    attention = MultiHeadAttention.Spec(
        heads=c["n_heads"],
        kv_heads=c["n_heads"],
        head_width=c.divide("dim", "n_heads"),
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_dropout"]),
        mask="full",
    )
    feed_forward = MLP.Spec(hidden=c["hidden_dim"], activation=activation)
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, out=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, out=norm, dropout=c["dropout"]),
        }
    )
    heads = {
        "masked": _heads.masked(c, width, activation, norm),
        **_heads.answers(c, c["seq_classif_dropout"], _heads.transform(width, "relu")),
        "token": TokenHead.Spec(transform=Dropout.Spec(rate=c["dropout"]), **_heads.named(c)),
        "span": TokenHead.Spec(labels=2, transform=Dropout.Spec(rate=c["qa_dropout"])),
    }
    return Encoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layers"]),
            positions={"learned": LearnedPositions.Spec(length=c["max_position_embeddings"])},
            masks={"full": Full()},
            start=Chain.Spec(parts=(norm, Dropout.Spec(rate=c["dropout"]))),
        ),
        heads=_heads.choose(c, ARCHITECTURE, heads),
    )


_PARTS = (
    *((f"attention.{x}_lin", f"attention.branch.{x}") for x in ("q", "k", "v", "out")),
    ("sa_layer_norm", "attention.out"),
    ("ffn.lin1", "feed_forward.branch.up"),
    ("ffn.lin2", "feed_forward.branch.down"),
    ("output_layer_norm", "feed_forward.out"),
)
_HEADS = (
    ("vocab_transform", "masked.transform.0.linear"),
    ("vocab_layer_norm", "masked.transform.2"),
    ("vocab_projector", "masked.vocabulary"),
    ("pre_classifier", "sequence.pooler.transform.0.0.linear"),
    ("classifier", "sequence.labels"),
    *_heads.EACH_TOKEN,
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``distilbert``."""
    base = _heads.base(config, ARCHITECTURE, "distilbert.")
    return (
        rename(f"{base}embeddings.word_embeddings.weight", "embed.token.weight"),
        rename(f"{base}embeddings.position_embeddings.weight", "stack.positions.learned.table.weight"),
        *renames(f"{base}embeddings", "stack.start", (("LayerNorm", "0"),)),
        *renames(f"{base}transformer.layer.{{i}}", "stack.blocks.{i}", _PARTS),
        *_heads.rules_of(_HEADS),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _heads.old("distilbert.", spec(config).heads, WEIGHTS(config))
