"""ModernBERT (Warner et al. 2024): the encoder with what decoders have learnt since BERT.

Peculiar to it: pre-LN without biases, but for the first attention, before which the norm of the embeddings stands
already; rotary positions; GEGLU; every third layer sees the whole row and turns slowly, the others see
``local_attention`` / 2 tokens on either side and turn at a rate of their own. No token types and no pooler: every head
has a transform with a norm, and the class of a row reads the first token or the mean.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _heads, _parts, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import items, size, table, text
from orrery.models.encoder import Encoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import First, LanguageModelHead, Mean, Pooler, SequenceHead, TokenHead
from orrery.nn.masks import Full, LocalWindow
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Chain, Dropout, Identity, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack

ARCHITECTURE = "ModernBertForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50368),
    "hidden_size": size(768),
    "intermediate_size": size(1152),
    "num_hidden_layers": size(22),
    "num_attention_heads": size(12),
    "hidden_activation": text("gelu", null=True),
    "max_position_embeddings": 8192,
    "norm_eps": 1e-5,
    "norm_bias": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "layer_types": items(),
    "global_attn_every_n_layers": size(3),
    "rope_parameters": table(),
    "global_rope_theta": 160_000.0,
    "local_rope_theta": 10_000.0,
    "local_attention": 128,
    "embedding_dropout": 0.0,
    "mlp_bias": False,
    "decoder_bias": True,
    "classifier_pooling": "cls",
    "classifier_dropout": 0.0,
    "classifier_bias": False,
    "classifier_activation": "gelu",
    "tie_word_embeddings": True,
    **_heads.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "max_position_embeddings": 48,
    "local_attention": 6,
}
_FIXED = {"mlp_dropout": 0.0, "rope_scaling": None}
_IGNORED = (
    "cls_token_id", "initializer_cutoff_factor", "deterministic_flash_attn", "sparse_pred*",
    "reference_compile", "repad_logits_with_grad", "layer_norm_eps", "position_embedding_type",
)  # fmt: skip
_KINDS = {_windows.FULL: "full", _windows.SLIDING: "local"}
_POOLS = {"cls": First(), "mean": Mean()}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: a kind of layer or of pooling that there is not, or a list of another length.
    """
    c = Config("modernbert", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm = LayerNorm.Spec(eps=c["norm_eps"], bias=c["norm_bias"])
    return Encoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=tuple(_block(c, kind, norm, first=i == 0) for i, kind in enumerate(_kinds(c))),
            final=norm,
            positions={"full": _rotary_of(c, _windows.FULL), "local": _rotary_of(c, _windows.SLIDING)},
            masks={"full": Full(), "local": LocalWindow(distance=_reach(c))},
            start=Chain.Spec(parts=(norm, Dropout.Spec(rate=c["embedding_dropout"]))),
        ),
        heads=_heads.choose(c, ARCHITECTURE, _all_heads(c, norm)),
    )


def _kinds(c: Config) -> list[str]:
    """Return what every layer sees: ``full`` or ``local``."""
    every, layers = c["global_attn_every_n_layers"], range(c["num_hidden_layers"])
    usual = [_windows.SLIDING if i % every else _windows.FULL for i in layers]
    return [_KINDS[kind] for kind in _windows.kinds_of(c, usual)]


def _reach(c: Config) -> int:
    """Return how many tokens on either side a windowed layer sees.

    Raises:
        ModelFileError: none.
    """
    if c["local_attention"] < 2:
        raise ModelFileError(
            f"{c.family}: local_attention = {c['local_attention']} sees no neighbour", "half of it lies on either side"
        )
    return int(c["local_attention"] // 2)


def _rotary_of(c: Config, kind: str) -> Rotary.Spec:
    """Return the positions of one kind of layers."""
    given = {
        "rope_parameters": (c["rope_parameters"] or {}).get(kind),
        "rope_theta": c["global_rope_theta" if kind == _windows.FULL else "local_rope_theta"],
    }
    _rotary.check_nested(c.family, given["rope_parameters"] or {})
    settings = Config(c.family, given, _rotary.DEFAULTS)
    return _rotary.rotary(settings, _decoders.head_width(c), c["max_position_embeddings"])


def _block(c: Config, kind: str, norm: LayerNorm.Spec, *, first: bool) -> Block.Spec:
    """Return a pre-LN block that sees what its kind sees."""
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), position=kind, mask=kind)
    feed_forward = GatedMLP.Spec(
        hidden=c["intermediate_size"], activation=c.activation("hidden_activation"), bias=c["mlp_bias"]
    )
    pre = Identity.Spec() if first else norm
    return Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=pre, dropout=c["attention_dropout"]),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
        }
    )


def _all_heads(c: Config, norm: LayerNorm.Spec) -> dict[str, ModuleSpec]:
    """Return every head that the family has."""
    transform = _heads.transform(
        c["hidden_size"], c.activation("classifier_activation"), norm, bias=c["classifier_bias"]
    )
    dropped = Chain.Spec(parts=(transform, Dropout.Spec(rate=c["classifier_dropout"])))
    pooler = Pooler.Spec(pool=c.choose("classifier_pooling", _POOLS), transform=dropped)
    return {
        "masked": LanguageModelHead.Spec(
            vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=c["decoder_bias"], transform=transform
        ),
        "sequence": SequenceHead.Spec(pooler=pooler, **_heads.of_row(c)),
        "token": TokenHead.Spec(transform=dropped, **_heads.named(c)),
        "span": TokenHead.Spec(labels=2, transform=dropped),
    }


_PARTS = (
    ("attn_norm", "attention.pre"),
    ("attn.Wo", "attention.branch.out"),
    ("mlp_norm", "feed_forward.pre"),
    ("mlp.Wo", "feed_forward.branch.down"),
)
_FUSED = (
    ("attn.Wqkv", "attention.branch", ("q", "k", "v")),
    ("mlp.Wi", "feed_forward.branch", ("gate", "up")),
)
_TRANSFORMED = ("masked.transform", "sequence.pooler.transform.0", "token.transform.0", "span.transform.0")
_HEADS = (
    *(("head.dense", f"{head}.0.linear") for head in _TRANSFORMED),
    *(("head.norm", f"{head}.2") for head in _TRANSFORMED),
    ("decoder", "masked.vocabulary"),
    *(("classifier", f"{head}.labels") for head in ("sequence", "token", "span")),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; a bare model's names begin without ``model``."""
    base = _heads.base(config, ARCHITECTURE, "model.")
    block, theirs = "stack.blocks.{i}", f"{base}layers.{{i}}"
    return (
        rename(f"{base}embeddings.tok_embeddings.weight", "embed.token.weight"),
        *renames(f"{base}embeddings", "stack.start", (("norm", "0"),)),
        *renames(theirs, block, _PARTS),
        *(
            fused(f"{theirs}.{a}.{end}", tuple(f"{block}.{b}.{part}.{end}" for part in parts))
            for a, b, parts in _FUSED
            for end in ("weight", "bias")
        ),
        *(rename(f"{base}final_norm.{end}", f"stack.final.{end}") for end in ("weight", "bias")),
        *_heads.rules_of(_HEADS),
    )


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _heads.old("model.", spec(config).heads, WEIGHTS(config))
