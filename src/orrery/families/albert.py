"""ALBERT (Lan et al. 2020): BERT with few parameters, because its layers share them.

Peculiar to it: one group of blocks (or several) stands at all depths; the embeddings are narrow and projected to the
blocks' width, and the masked language model's head projects back; gelu in its tanh form; no dropout on what the
feed-forward network adds. Its head for a pair of sentences says whether they stand in their order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, renames
from orrery.families import _bert, _heads
from orrery.families._config import Config
from orrery.families._keys import plain, size
from orrery.models.encoder import Encoder
from orrery.nn.block import Block
from orrery.nn.elementwise import Projection
from orrery.nn.heads import Pooler, SequenceHead
from orrery.nn.residual import Chain, Dropout
from orrery.nn.stack import repeat

ARCHITECTURE = "AlbertForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    **_bert.BODY,
    "vocab_size": size(30000),
    "embedding_size": size(128),
    "hidden_size": size(4096),
    "num_hidden_groups": size(1),
    "num_attention_heads": size(64),
    "intermediate_size": size(16384),
    "inner_group_num": size(1),
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout_prob": 0.1,
}
TINY = {**_bert.TINY, "embedding_size": 16, "num_hidden_layers": 3, "num_hidden_groups": 2}
_UNUSED = {"down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("albert", config, DEFAULTS, fixed={**_bert.FIXED, **_UNUSED}, ignored=_bert.IGNORED)
    width, entry, groups, inner = (
        c[key] for key in ("hidden_size", "embedding_size", "num_hidden_groups", "inner_group_num")
    )
    stack = replace(
        _bert.stack(c, Projection.Spec(width=width), entry=entry),
        blocks=repeat(_block(c), groups * inner),
        order=_order(c["num_hidden_layers"], groups, inner),
    )
    pooler, dropout = _heads.transform(width, "tanh"), c["classifier_dropout_prob"]
    dropped = Chain.Spec(parts=(pooler, Dropout.Spec(rate=dropout)))
    heads = {
        "masked": _heads.masked(c, entry, c.activation("hidden_act"), _bert.norm(c)),
        "pooled": Pooler.Spec(transform=pooler),
        "next": SequenceHead.Spec(labels=_heads.labels(c), pooler=Pooler.Spec(transform=dropped)),
        **_heads.answers(c, dropout, pooler),
    }
    return Encoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=_bert.embed(c),
        stack=stack,
        heads=_heads.choose(c, ARCHITECTURE, heads),
    )


def _block(c: Config) -> Block.Spec:
    """Return BERT's block without the second dropout."""
    residuals = _bert.block(c).residuals
    return Block.Spec(residuals={**residuals, "feed_forward": replace(residuals["feed_forward"], dropout=0.0)})


def _order(layers: int, groups: int, inner: int) -> tuple[int, ...]:
    """Return which block stands at each depth: a layer runs all blocks of its group, and groups follow evenly."""
    return tuple(int(i / (layers / groups)) * inner + j for i in range(layers) for j in range(inner))


_PARTS = (
    *((f"attention.{x}", f"attention.branch.{x[0]}") for x in ("query", "key", "value")),
    ("attention.dense", "attention.branch.out"),
    ("attention.LayerNorm", "attention.out"),
    ("ffn", "feed_forward.branch.up"),
    ("ffn_output", "feed_forward.branch.down"),
    ("full_layer_layer_norm", "feed_forward.out"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``albert``."""
    base = _heads.base(config, ARCHITECTURE, "albert.")
    groups, inner = ({**plain(DEFAULTS), **config}[key] for key in ("num_hidden_groups", "inner_group_num"))
    names = [f"{base}encoder.albert_layer_groups.{g}.albert_layers.{j}" for g in range(groups) for j in range(inner)]
    poolers = ("pooled.transform", "next.pooler.transform.0", "sequence.pooler.transform.0")
    labels = (("sop_classifier.classifier", "next.labels"), ("classifier", "sequence.labels"), *_heads.EACH_TOKEN)
    return (
        *_bert.embedding_rules(base),
        *renames(f"{base}encoder", "stack.start", (("embedding_hidden_mapping_in", "2.linear"),)),
        *(rule for i, name in enumerate(names) for rule in renames(name, f"stack.blocks.{i}", _PARTS)),
        *_heads.masked_rules("predictions", "dense", "LayerNorm", tied=_bert.tied(config)),
        *_heads.rules_of((f"{base}pooler", f"{pooler}.0.linear") for pooler in poolers),
        *_heads.rules_of(labels),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return {
        **_heads.old_bias("predictions", tied=_bert.tied(config)),
        **_heads.old("albert.", spec(config).heads, WEIGHTS(config)),
    }
