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

from orrery.checkpoints.layouts import ByGroup
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.alibi import RoundedAlibi
from orrery.nn.residual import Normed, Residual, Sum
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "FalconForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 65024,
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "num_ln_in_parallel_attn": None,
    "num_kv_heads": None,
    "layer_norm_epsilon": 1e-5,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "alibi": False,
    "new_decoder_architecture": False,
    "multi_query": True,
    "parallel_attn": True,
    "bias": False,
    "max_position_embeddings": 2048,
    "ffn_hidden_size": None,
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
_IGNORED = ("auto_map",)


def _read(config: Mapping[str, Any]) -> Config:
    return Config("falcon", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def _kv_heads(c: Config) -> int:
    if c["new_decoder_architecture"]:
        return c["num_kv_heads"] or c["num_attention_heads"]
    return 1 if c["multi_query"] else c["num_attention_heads"]


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    heads, context = c["num_attention_heads"], c["max_position_embeddings"]
    head_width = c.divide("hidden_size", "num_attention_heads")
    alibi = RoundedAlibi.Spec(heads=heads, scale=head_width**-0.5)
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(Block.Spec(residuals=_residuals(c, head_width)), c["num_hidden_layers"]),
            final=LayerNorm.Spec(eps=c["layer_norm_epsilon"]),
            positions={"position": alibi if c["alibi"] else _rotary.rotary(c, head_width, context)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


def _residuals(c: Config, head_width: int) -> dict[str, Residual.Spec]:
    """Return one residual of two branches, with two norms or one, or two residuals."""
    bias, norm, dropout = c["bias"], LayerNorm.Spec(eps=c["layer_norm_epsilon"]), c["hidden_dropout"]
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=_kv_heads(c),
        head_width=head_width,
        biases=Biases(q=bias, k=bias, v=bias, out=bias),
        scoring=Scoring(dropout=c["attention_dropout"] if c["alibi"] else 0.0),
        position="position",
    )
    hidden = c["ffn_hidden_size"] or 4 * c["hidden_size"]
    feed_forward = MLP.Spec(hidden=hidden, activation=c.activation("activation"), bias=bias)
    branches = {"feed_forward": feed_forward, "attention": attention}  # the order in which the reference adds
    if c["new_decoder_architecture"] and (c["num_ln_in_parallel_attn"] or 2) == 2:
        normed = Sum.Spec(branches={name: Normed.Spec(norm=norm, branch=branch) for name, branch in branches.items()})
        return {"parallel": Residual.Spec(branch=normed, dropout=dropout)}
    if c["new_decoder_architecture"] or c["parallel_attn"]:
        return {"parallel": Residual.Spec(branch=Sum.Spec(branches=branches), pre=norm, dropout=dropout)}
    return {
        "attention": Residual.Spec(branch=attention, pre=norm, dropout=c["attention_dropout"]),
        "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
    }


_BLOCK, _THEIRS = "stack.blocks.{i}", "transformer.h.{i}"
_FORMS = (
    ("parallel.branch.attention.branch", "parallel.branch.feed_forward.branch"),
    ("parallel.branch.attention", "parallel.branch.feed_forward"),
    ("attention.branch", "feed_forward.branch"),
)
_NORMS = (
    ("ln_attn", "parallel.branch.attention.norm"),
    ("ln_mlp", "parallel.branch.feed_forward.norm"),
    ("input_layernorm", "parallel.pre"),
    ("input_layernorm", "attention.pre"),
    ("post_attention_layernorm", "feed_forward.pre"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; where q, k and v lie depends on the number of key-value heads."""
    groups = ByGroup(_kv_heads(_read(config)))
    fused = tuple(
        Rule(
            f"{_THEIRS}.self_attention.query_key_value.{p}",
            tuple(f"{_BLOCK}.{attention}.{x}.{p}" for x in "qkv"),
            groups,
        )
        for attention, _ in _FORMS
        for p in ("weight", "bias")
    )
    pairs = [("self_attention.dense", f"{attention}.out") for attention, _ in _FORMS]
    pairs += [("mlp.dense_h_to_4h", f"{feed_forward}.up") for _, feed_forward in _FORMS]
    pairs += [("mlp.dense_4h_to_h", f"{feed_forward}.down") for _, feed_forward in _FORMS]
    return (
        rename("transformer.word_embeddings.weight", "embed.token.weight"),
        *fused,
        *renames(_THEIRS, _BLOCK, (*_NORMS, *pairs)),
        *renames("transformer", "stack", (("ln_f", "final"),)),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
