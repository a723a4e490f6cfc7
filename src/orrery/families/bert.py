"""BERT (Devlin et al. 2019): the bidirectional encoder, trained to fill in masked tokens.

Peculiar to it: post-LN, so a LayerNorm behind each residual sum and one on the embeddings, none at the end; learned
positions; a token type's vector for each token of a pair of sentences; biases everywhere. The masked language model's
head is a transform, a norm and the embedding table with a bias of its own; the pooler is tanh of a projected [CLS].
Its head for a pair of sentences says whether the second follows the first: label 0 says that it does.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _bert, _heads
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.heads import Pooler, SequenceHead

ARCHITECTURE = "BertForMaskedLM"
DEFAULTS: Mapping[str, Any] = _bert.DEFAULTS
TINY = _bert.TINY


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("bert", config, DEFAULTS, fixed=_bert.FIXED, ignored=_bert.IGNORED)
    width = c["hidden_size"]
    pooler = _heads.transform(width, "tanh")
    heads = {
        "masked": _heads.masked(c, width, c.activation("hidden_act"), _bert.norm(c)),
        "pooled": Pooler.Spec(transform=pooler),
        "next": SequenceHead.Spec(labels=2, pooler=Pooler.Spec(transform=pooler)),
        **_heads.answers(c, _bert.classifier_dropout(c), pooler),
    }
    return Encoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=_bert.embed(c),
        stack=_bert.stack(c),
        heads=_heads.choose(c, ARCHITECTURE, heads),
    )


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``bert``."""
    base = _heads.base(config, ARCHITECTURE, "bert.")
    poolers = ("pooled.transform", "next.pooler.transform", "sequence.pooler.transform.0")
    labels = (("cls.seq_relationship", "next.labels"), ("classifier", "sequence.labels"), *_heads.EACH_TOKEN)
    return (
        *_bert.embedding_rules(base),
        *_bert.block_rules(base),
        *_heads.masked_rules("cls.predictions", "transform.dense", "transform.LayerNorm", tied=_bert.tied(config)),
        *_heads.rules_of((f"{base}pooler.dense", f"{pooler}.0.linear") for pooler in poolers),
        *_heads.rules_of(labels),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return {
        **_heads.old_bias("cls.predictions", tied=_bert.tied(config)),
        **_heads.old("bert.", spec(config).heads, WEIGHTS(config)),
    }
