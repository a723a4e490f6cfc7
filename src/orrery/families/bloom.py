"""BLOOM (BigScience 2022): the pre-LN decoder without positions, whose heads look the less far the steeper they fall.

Peculiar to it: ALiBi (Press et al. 2022) in the place of positions; a LayerNorm right behind the embeddings; biases
everywhere; gelu in its tanh form; the head is the embedding table. In its files q, k and v are one matrix, in which
the rows of head 0 come first, then those of head 1: q, k and v of each. Differs from transformers: there the constant
of gelu's tanh form is cut after eight digits, which moves the logits by about 2e-10.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import ByGroup
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _old
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.alibi import Alibi
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "BloomForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 250880,
    "hidden_size": 64,
    "n_layer": 2,
    "n_head": 8,
    "seq_length": 2048,
    "layer_norm_epsilon": 1e-5,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
}
TINY = {"vocab_size": 61, "hidden_size": 24, "n_layer": 2, "n_head": 3, "seq_length": 48}
_FIXED = {"apply_residual_connection_post_layernorm": False}
_ALIASES = {"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
_IGNORED = (
    "pretraining_tp", "slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion", "bias_dropout_fusion",
    "offset_alibi", "skip_bias_add*", "n_inner", "unk_token_id",
)  # fmt: skip


def _read(config: Mapping[str, Any]) -> Config:
    return Config("bloom", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    heads, norm = c["n_head"], LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("hidden_size", "n_head"),
        biases=Biases(q=True, k=True, v=True, out=True),
        scoring=Scoring(dropout=c["attention_dropout"]),
        position="alibi",
    )
    feed_forward = MLP.Spec(hidden=4 * c["hidden_size"], activation="gelu_tanh")
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm, dropout=c["hidden_dropout"]),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=c["hidden_dropout"]),
        }
    )
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["seq_length"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layer"]),
            final=norm,
            positions={"alibi": Alibi.Spec(heads=heads)},
            masks={"causal": Causal()},
            start=norm,
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


OLD = _old.headless("transformer.", "word_embeddings", "word_embeddings_layernorm", "h", "ln_f")
_BLOCK, _THEIRS = "stack.blocks.{i}", "transformer.h.{i}"


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; where q, k and v lie depends on the number of heads."""
    fused = tuple(
        Rule(
            f"{_THEIRS}.self_attention.query_key_value.{p}",
            tuple(f"{_BLOCK}.attention.branch.{x}.{p}" for x in "qkv"),
            ByGroup(_read(config)["n_head"]),
        )
        for p in ("weight", "bias")
    )
    pairs = (
        ("input_layernorm", "attention.pre"),
        ("self_attention.dense", "attention.branch.out"),
        ("post_attention_layernorm", "feed_forward.pre"),
        ("mlp.dense_h_to_4h", "feed_forward.branch.up"),
        ("mlp.dense_4h_to_h", "feed_forward.branch.down"),
    )
    outer = (("word_embeddings_layernorm", "start"), ("ln_f", "final"))
    return (
        rename("transformer.word_embeddings.weight", "embed.token.weight"),
        *fused,
        *renames(_THEIRS, _BLOCK, pairs),
        *renames("transformer", "stack", outer),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
