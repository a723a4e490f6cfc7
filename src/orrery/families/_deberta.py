"""What the DeBERTa families share: the encoder around their attentions, and the names of its weights."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.attention.disentangled import ContentToPosition, DisentangledAttention, PositionToContent
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import SegmentedEmbedding, TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Everything
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.residual import Chain, Dropout, Residual
from orrery.nn.slots import Activate, Projection
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
    "pos_att_type": None,
    "legacy": True,
}
"""The keys that both families use, with what an absent key means."""

FIXED: Mapping[str, Any] = {"tie_word_embeddings": True}
IGNORED = ("pooler_*", "cls_dropout", "padding_idx")

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
    scoring = Scoring(scale=((1 + len(names)) * head_width) ** -0.5, dropout=config["attention_probs_dropout_prob"])
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
    return Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, out=norm, dropout=dropout),
            "feed_forward": Residual.Spec(branch=feed_forward, out=norm, dropout=dropout),
        }
    )


def encoder(config: Config, blocks: tuple[Block.Spec, ...], relative: PositionSpec) -> Encoder.Spec:
    """Return the masked language model around the blocks."""
    width, vocabulary, segments = config["hidden_size"], config["vocab_size"], config["type_vocab_size"]
    norm, context = LayerNorm.Spec(eps=config["layer_norm_eps"]), config["max_position_embeddings"]
    positions: dict[str, PositionSpec] = {}
    if config["position_biased_input"]:
        positions["learned"] = LearnedPositions.Spec(length=context)
    if config["relative_attention"]:
        positions["relative"] = relative
    answer = (Projection.Spec(width=width), Activate.Spec(activation=config.activation("hidden_act")), norm)
    return Encoder.Spec(
        width=width,
        context=context,
        embed=SegmentedEmbedding.Spec(vocabulary=vocabulary, segments=segments)
        if segments
        else TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=Stack.Spec(
            blocks=blocks,
            positions=positions,
            masks={"full": Everything()},
            start=Chain.Spec(parts=(norm, Dropout.Spec(rate=config["hidden_dropout_prob"]))),
        ),
        heads={
            "masked": LanguageModelHead.Spec(
                vocabulary=vocabulary, tied=True, bias=True, transform=Chain.Spec(parts=answer)
            )
        },
    )


BLOCK, THEIRS = "stack.blocks.{i}", "deberta.encoder.layer.{i}"
BLOCKS = (BLOCK, f"{BLOCK}.convolved.branch.block")
"""Where a block may stand: in the stack, or beside the convolution of v2."""

_SHARED: tuple[Rule, ...] = (
    rename("deberta.embeddings.word_embeddings.weight", "embed.token.weight"),
    rename("deberta.embeddings.token_type_embeddings.weight", "embed.segment.weight"),
    rename("deberta.embeddings.position_embeddings.weight", "stack.positions.learned.table.weight"),
    rename("deberta.encoder.rel_embeddings.weight", "stack.positions.relative.table.weight"),
    *renames("deberta.embeddings", "stack.start", (("LayerNorm", "0"),)),
    *(
        rule
        for block in BLOCKS
        for rule in renames(
            THEIRS,
            block,
            (
                ("attention.output.dense", "attention.branch.out"),
                ("attention.output.LayerNorm", "attention.out"),
                ("intermediate.dense", "feed_forward.branch.up"),
                ("output.dense", "feed_forward.branch.down"),
                ("output.LayerNorm", "feed_forward.out"),
            ),
        )
    ),
)


def rules(config: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules of both families: the newer masked head (``legacy`` false) has names of its own."""
    if config.get("legacy", DEFAULTS["legacy"]):
        theirs, transform = "cls.predictions", "cls.predictions.transform"
    else:
        theirs = transform = "lm_predictions.lm_head"
    return (
        *_SHARED,
        *renames(transform, "heads.masked.transform", (("dense", "0.linear"), ("LayerNorm", "2"))),
        rename(f"{theirs}.bias", "heads.masked.vocabulary.bias"),
        rename(f"{theirs}.decoder.weight", "heads.masked.vocabulary.weight"),
    )
