"""Falcon (Almazrouei et al. 2023): parallel branches and very few key-value heads, in three generations.

Peculiar to it: Falcon-7B has one key-value head and one norm for both branches; Falcon-40B and 180B
(``new_decoder_architecture``) have several key-value heads and a norm for each branch; Falcon-RW is sequential with
ALiBi in the place of rotary positions. No biases but in the norms, except RW; the head is the embedding table. In its
files q, k and v are one matrix, group by group: the queries that share a key, that key, its value.

ALiBi is rounded to bfloat16 as transformers does it. Its eager kernel adds the bias twice, its sdpa kernel, which is
the default there, once: Orrery equals the latter.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _megatron, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.block import Block
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.alibi import RoundedAlibi
from orrery.nn.residual import Normed, Residual
from orrery.nn.stack import repeat

ARCHITECTURE = "FalconForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(65024),
    "hidden_size": size(4544),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(71),
    "num_ln_in_parallel_attn": count(None),
    "num_kv_heads": size(None),
    "layer_norm_epsilon": 1e-5,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "alibi": False,
    "new_decoder_architecture": False,
    "multi_query": True,
    "parallel_attn": True,
    "bias": False,
    "max_position_embeddings": 2048,
    "ffn_hidden_size": size(None),
    "activation": "gelu",
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_kv_heads": 2,
    "new_decoder_architecture": True,
    "max_position_embeddings": 48,
}
_ALIASES = {"n_embed": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
_ALIASES |= {"n_head_kv": "num_kv_heads"}
_FIXED = {"apply_residual_connection_post_layernorm": False}


def _read(config: Mapping[str, Any]) -> Config:
    return Config("falcon", config, DEFAULTS, fixed=_FIXED, aliases=_ALIASES)


def _kv_heads(c: Config) -> int:
    if c["new_decoder_architecture"]:
        return c["num_kv_heads"] or c["num_attention_heads"]
    return 1 if c["multi_query"] else c["num_attention_heads"]


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    alibi = RoundedAlibi.Spec(heads=c["num_attention_heads"], scale=_decoders.head_width(c) ** -0.5)
    positions = {"position": alibi if c["alibi"] else _decoders.rotary(c)}
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    return _decoders.decoder(
        c, _decoders.stack(c, repeat(_block(c), c["num_hidden_layers"]), norm, positions=positions)
    )


def _block(c: Config) -> Block.Spec:
    """Return one residual of two branches, with two norms or one, or two residuals.

    Raises:
        ModelFileError: the new architecture with one branch behind the other, which the reference cannot run either.
    """
    bias, norm, dropout = c["bias"], LayerNorm.Spec(eps=c["layer_norm_epsilon"]), c["hidden_dropout"]
    attention = _decoders.attention(
        c,
        kv_heads=_kv_heads(c),
        biases=_parts.biases(bias),
        scoring=ScoreSettings(dropout=c["attention_dropout"] if c["alibi"] else 0.0),
        position="position",
    )
    hidden = c["ffn_hidden_size"] or 4 * c["hidden_size"]
    feed_forward = MLP.Spec(hidden=hidden, activation=c.activation("activation"), bias=bias)
    branches = {"feed_forward": feed_forward, "attention": attention}  # the order in which the reference adds
    if c["new_decoder_architecture"] and not c["parallel_attn"]:
        raise ModelFileError(
            "falcon: parallel_attn = false is not supported with new_decoder_architecture, whose branches are parallel",
            "set one of the two to what the weights were trained with; transformers cannot run both",
        )
    if c["new_decoder_architecture"] and (c["num_ln_in_parallel_attn"] or 2) == 2:
        normed = {name: Normed.Spec(norm=norm, branch=branch) for name, branch in branches.items()}
        return _parts.parallel(normed, dropout=dropout)
    if c["parallel_attn"]:
        return _parts.parallel(branches, pre=norm, dropout=dropout)
    residuals = {
        "attention": Residual.Spec(branch=attention, pre=norm, dropout=c["attention_dropout"]),
        "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
    }
    return Block.Spec(residuals=residuals)


_PLACES = (
    ("parallel.branch.attention.branch", "parallel.branch.feed_forward.branch"),
    ("parallel.branch.attention", "parallel.branch.feed_forward"),
    ("attention.branch", "feed_forward.branch"),
)
_NORMS = (
    ("ln_attn", "parallel.branch.attention.norm"),
    ("ln_mlp", "parallel.branch.feed_forward.norm"),
    ("input_layernorm", "parallel.pre"),
    *_decoders.PRE_NORMS,
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; where q, k and v lie depends on the number of key-value heads."""
    layer = "transformer.h.{i}"
    return (
        rename("transformer.word_embeddings.weight", "embed.token.weight"),
        *_megatron.branches(layer, "self_attention", _kv_heads(_read(config)), _PLACES),
        *renames(layer, "stack.blocks.{i}", _NORMS),
        *renames("transformer", "stack", (("ln_f", "final"),)),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
