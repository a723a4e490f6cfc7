"""What the DeBERTa families share: the encoder around their attentions, and the names of its weights."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _bert, _heads, _parts
from orrery.families._config import Config
from orrery.families._keys import Key, count, number
from orrery.models.encoder import Encoder
from orrery.nn.attention.disentangled import ContentToPosition, DisentangledAttention, PositionToContent
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import TokenHead
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.residual import Chain, Dropout
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

DEFAULTS: Mapping[str, Any] = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "relative_attention": False,
    "max_relative_positions": -1,
    "position_biased_input": True,
    "pos_att_type": Key(None, ("text", "list")),
    "legacy": True,
    "tie_word_embeddings": True,
    "pooler_dropout": 0.0,
    "pooler_hidden_act": "gelu",
    "pooler_hidden_size": count(None),
    "cls_dropout": number(None),
    **_heads.DEFAULTS,
}
"""The keys that both families use, with what an absent key means."""

IGNORED = ("padding_idx",)

_TERMS = {
    "c2p": ("content_to_position", ContentToPosition.Spec),
    "p2c": ("position_to_content", PositionToContent.Spec),
}


def reach(config: Config) -> int:
    """Return how many distances on either side have meaning."""
    given = int(config["max_relative_positions"])
    return given if given > 0 else int(config["max_position_embeddings"])


def terms(config: Config) -> tuple[str, ...]:
    """Return which comparisons with positions there are: ``c2p``, ``p2c``.

    Raises:
        ModelFileError: one that no paper defines.
    """
    given = config["pos_att_type"] or ()
    names = tuple(x.strip() for x in given.lower().split("|")) if isinstance(given, str) else tuple(given)
    if len(set(names) & set(_TERMS)) < len(names):
        raise ModelFileError(
            f"{config.family}: pos_att_type = {given!r} is not known", "known: 'c2p', 'p2c', each at most once"
        )
    return names


def attention(config: Config, biases: Biases, projections: Mapping[str, ModuleSpec]) -> ModuleSpec:
    """Return the attention: disentangled, with a projection for each term, or plain where positions are not relative.

    Both divide by the root of ``C`` times one more than the number of terms.
    """
    heads, names = config["num_attention_heads"], terms(config)
    head_width = config.divide("hidden_size", "num_attention_heads")
    scoring = ScoreSettings(
        scale=((1 + len(names)) * head_width) ** -0.5, dropout=config["attention_probs_dropout_prob"]
    )
    if not config["relative_attention"]:
        return MultiHeadAttention.Spec(
            heads=heads, kv_heads=heads, head_width=head_width, biases=biases, scoring=scoring, mask="full"
        )
    return DisentangledAttention.Spec(
        heads=heads,
        head_width=head_width,
        terms={_TERMS[name][0]: _TERMS[name][1](projection=projections[name]) for name in names},
        biases=biases,
        scoring=scoring,
        table=Dropout.Spec(rate=config["hidden_dropout_prob"]),
    )


def block(config: Config, attention: ModuleSpec) -> Block.Spec:
    """Return a block: a norm after each addition, as in BERT."""
    norm, dropout = LayerNorm.Spec(eps=config["layer_norm_eps"]), config["hidden_dropout_prob"]
    feed_forward = MLP.Spec(hidden=config["intermediate_size"], activation=config.activation("hidden_act"))
    return _parts.sequential({"attention": attention, "feed_forward": feed_forward}, out=norm, dropout=dropout)


def encoder(config: Config, architecture: str, blocks: tuple[Block.Spec, ...], relative: PositionSpec) -> Encoder.Spec:
    """Return the model around the blocks, with the heads that its configuration asks for."""
    vocabulary, token_types = config["vocab_size"], config["type_vocab_size"]
    norm, context = LayerNorm.Spec(eps=config["layer_norm_eps"]), config["max_position_embeddings"]
    positions: dict[str, PositionSpec] = {}
    if config["position_biased_input"]:
        positions["learned"] = LearnedPositions.Spec(length=context)
    if config["relative_attention"]:
        positions["relative"] = relative
    return Encoder.Spec(
        width=config["hidden_size"],
        context=context,
        embed=TokenTypeEmbedding.Spec(vocabulary=vocabulary, token_types=token_types)
        if token_types
        else TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=Stack.Spec(
            blocks=blocks,
            positions=positions,
            masks={"full": Full()},
            start=Chain.Spec(parts=(norm, Dropout.Spec(rate=config["hidden_dropout_prob"]))),
        ),
        heads=_heads.choose(config, architecture, _every_head(config, norm)),
    )


def _every_head(c: Config, norm: ModuleSpec) -> dict[str, ModuleSpec]:
    """Return the heads: BERT's, but for a pooler with an activation and a dropout of its own.

    Raises:
        ModelFileError: the head is not tied, or the pooler has another width; the reference cannot run either.
    """
    width = c["hidden_size"]
    for key, only in (("tie_word_embeddings", True), ("pooler_hidden_size", width)):
        if c[key] not in (None, only):
            raise ModelFileError(f"{c.family}: {key} = {c[key]!r} is not supported, only {only!r}", "remove the key")
    dropout = float(c["hidden_dropout_prob"] if c["cls_dropout"] is None else c["cls_dropout"])
    pooler = Chain.Spec(
        parts=(Dropout.Spec(rate=c["pooler_dropout"]), _heads.transform(width, c.activation("pooler_hidden_act")))
    )
    return {
        "masked": _heads.masked(c, width, c.activation("hidden_act"), norm),
        **_heads.answers(c, dropout, pooler),
        "token": TokenHead.Spec(transform=Dropout.Spec(rate=c["hidden_dropout_prob"]), **_heads.named(c)),
    }


_PREFIX, _MASKED = "deberta.", "cls.predictions"
BLOCK, THEIRS = "stack.blocks.{i}", "encoder.layer.{i}"
BLOCKS = (BLOCK, f"{BLOCK}.convolved.branch.block")
"""Where a block may stand: in the stack, or beside the convolution of v2."""

_SHARED: tuple[Rule, ...] = (
    rename("embeddings.word_embeddings.weight", "embed.token.weight"),
    rename("embeddings.token_type_embeddings.weight", "embed.segment.weight"),
    rename("embeddings.position_embeddings.weight", "stack.positions.learned.table.weight"),
    rename("encoder.rel_embeddings.weight", "stack.positions.relative.table.weight"),
    *renames("embeddings", "stack.start", (("LayerNorm", "0"),)),
    *(rule for block in BLOCKS for rule in renames(THEIRS, block, _bert.REST)),
)
_LABELS = (
    ("pooler.dense", "sequence.pooler.transform.0.1.0.linear"),
    ("classifier", "sequence.labels"),
    *_heads.EACH_TOKEN,
)


def rules(config: Mapping[str, Any], architecture: str, own: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return all rules: the shared ones, a family's ``own`` of its stack, and those of the heads.

    The newer masked head (``legacy`` false) has names of its own.
    """
    base = _heads.base(config, architecture, _PREFIX)
    if config.get("legacy", DEFAULTS["legacy"]):
        masked = _heads.masked_rules(_MASKED, "transform.dense", "transform.LayerNorm", tied=True)
    else:
        masked = _heads.masked_rules("lm_predictions.lm_head", "dense", "LayerNorm", tied=True)
    return (
        *(replace(rule, theirs=f"{base}{rule.theirs}") for rule in (*_SHARED, *own)),
        *masked,
        *_heads.rules_of(_LABELS),
    )


def old(config: Mapping[str, Any], heads: Iterable[str], rules: Sequence[Rule]) -> dict[str, str | None]:
    """Return the old names.

    The published files hold two heads from training, whatever their configuration says: the masked language model's
    under its newer name, with the same numbers under either, and the one that finds replaced tokens. Some have a table
    of positions, too, that is not added.
    """
    newer = {
        r"^lm_predictions\.lm_head\.(dense|LayerNorm)\.": rf"{_MASKED}.transform.\1.",
        r"^lm_predictions\.lm_head\.bias$": f"{_MASKED}.bias",
    }
    unused = not config.get("position_biased_input", DEFAULTS["position_biased_input"])
    return {
        **(newer if config.get("legacy", DEFAULTS["legacy"]) else {}),
        **_heads.old_bias(_MASKED, tied=True),
        r"^mask_predictions\.": None,
        **({r"\bposition_embeddings\.weight$": None} if unused else {}),
        **_heads.old(_PREFIX, heads, rules),
    }
