"""What RoBERTa and its kin have in common: for XLM-R and CamemBERT that is all but the vocabulary and the name."""

from collections.abc import Callable, Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError
from orrery.families import _bert, _heads
from orrery.families._config import Config
from orrery.families._keys import token
from orrery.models.encoder import Encoder
from orrery.nn.heads import Pooler
from orrery.nn.residual import Chain, Dropout
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

DEFAULTS: Mapping[str, Any] = {**_bert.DEFAULTS, "pad_token_id": token(1)}
TINY: Mapping[str, Any] = {**_bert.TINY, "max_position_embeddings": 50, "type_vocab_size": 1, "pad_token_id": 1}


def spec(
    config: Mapping[str, Any],
    family: str,
    architecture: str,
    defaults: Mapping[str, Any],
    stack: Callable[..., Stack.Spec] = _bert.stack,
) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes; ``stack`` makes its stack, given ``offset``.

    Raises:
        ModelFileError: no padding token is given, behind which the positions begin.
    """
    c = Config(family, config, defaults, fixed=_bert.FIXED, ignored=_bert.IGNORED)
    if c["pad_token_id"] is None:
        raise ModelFileError(
            f"{family}: pad_token_id is null, and the table of positions begins behind it", "give its number, mostly 1"
        )
    offset = c["pad_token_id"] + 1
    return Encoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"] - offset,
        embed=_bert.embed(c),
        stack=stack(c, offset=offset),
        heads=heads(c, architecture, _bert.classifier_dropout(c)),
    )


def heads(c: Config, architecture: str, dropout: float) -> dict[str, ModuleSpec]:
    """Return the heads that a configuration asks for; ``dropout`` comes before the labels."""
    width = c["hidden_size"]
    pooler = _heads.transform(width, "tanh")
    heads = {
        "masked": _heads.masked(c, width, "gelu", _bert.norm(c)),
        "pooled": Pooler.Spec(transform=pooler),
        **_heads.answers(c, dropout, Chain.Spec(parts=(Dropout.Spec(rate=dropout), pooler))),
    }
    return _heads.choose(c, architecture, heads)


def _stack_rules(base: str) -> tuple[Rule, ...]:
    return (*_bert.embedding_rules(base), *_bert.block_rules(base))


def rules(
    config: Mapping[str, Any],
    architecture: str,
    stack: Callable[[str], tuple[Rule, ...]] = _stack_rules,
    prefix: str = "roberta.",
) -> tuple[Rule, ...]:
    """Return the rules of the files; a bare model's names lack the prefix; ``stack`` names the parts behind it."""
    base = _heads.base(config, architecture, prefix)
    row = (
        ("classifier.dense", "sequence.pooler.transform.0.1.0.linear"),
        ("classifier.out_proj", "sequence.labels"),
    )
    return (
        *stack(base),
        *_heads.masked_rules("lm_head", "dense", "layer_norm", tied=_bert.tied(config)),
        *_heads.rules_of(((f"{base}pooler.dense", "pooled.transform.0.linear"), *row, *_heads.EACH_TOKEN)),
    )


def old(
    heads: Mapping[str, Any],
    config: Mapping[str, Any],
    architecture: str,
    stack: Callable[[str], tuple[Rule, ...]] = _stack_rules,
    prefix: str = "roberta.",
) -> dict[str, str | None]:
    """Return the names of old files."""
    return {
        **_heads.old_bias("lm_head", tied=_bert.tied(config)),
        **_heads.old(prefix, heads, rules(config, architecture, stack, prefix)),
    }
