"""ELECTRA (Clark et al. 2020): an encoder that tells which tokens another one, the generator, has replaced.

Peculiar to it: BERT's stack over embeddings that are narrower than the blocks and projected where they are; the
generator is a masked language model (``ElectraForMaskedLM``), the discriminator says for each token how likely it was
replaced (``ElectraForPreTraining``: one logit, positive for replaced; transformers leaves its axis away); no pooler,
and a class's head with a projection of its own and gelu.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _bert, _heads
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.elementwise import Projection
from orrery.nn.heads import TokenHead
from orrery.nn.residual import Chain, Dropout

ARCHITECTURE = "ElectraForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    **_bert.DEFAULTS,
    "embedding_size": size(128),
    "hidden_size": size(256),
    "num_attention_heads": size(4),
    "intermediate_size": size(1024),
}
TINY = {**_bert.TINY, "embedding_size": 16}
_PURPOSES = {**_heads.PURPOSES, "ForPreTraining": ("replaced",)}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("electra", config, DEFAULTS, fixed=_bert.FIXED, ignored=(*_bert.IGNORED, "summary_*"))
    width, entry, dropout = c["hidden_size"], c["embedding_size"], _bert.classifier_dropout(c)
    widen = () if entry == width else (Projection.Spec(width=width),)
    row = Chain.Spec(parts=(Dropout.Spec(rate=dropout), _heads.transform(width, "gelu")))
    heads = {
        "masked": _heads.masked(c, entry, "gelu", _bert.norm(c)),
        "replaced": TokenHead.Spec(labels=1, transform=_heads.transform(width, c.activation("hidden_act"))),
        **_heads.answers(c, dropout, row),
    }
    return Encoder.Spec(
        width=width,
        context=c["max_position_embeddings"],
        embed=_bert.embed(c),
        stack=_bert.stack(c, *widen, entry=entry),
        heads=_heads.choose(c, ARCHITECTURE, heads, _PURPOSES),
    )


_HEADS = (
    ("generator_predictions.dense", "masked.transform.0.linear"),
    ("generator_predictions.LayerNorm", "masked.transform.2"),
    ("generator_lm_head", "masked.vocabulary"),
    ("discriminator_predictions.dense", "replaced.transform.0.linear"),
    ("discriminator_predictions.dense_prediction", "replaced.labels"),
    ("classifier.dense", "sequence.pooler.transform.0.1.0.linear"),
    ("classifier.out_proj", "sequence.labels"),
    *_heads.EACH_TOKEN,
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``electra``."""
    base = _heads.base(config, ARCHITECTURE, "electra.")
    return (
        *_bert.embedding_rules(base),
        *(rename(f"{base}embeddings_project.{p}", f"stack.start.2.linear.{p}") for p in ("weight", "bias")),
        *_bert.block_rules(base),
        *_heads.rules_of(_HEADS),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _heads.old("electra.", spec(config).heads, WEIGHTS(config))
