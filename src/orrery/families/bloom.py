"""BLOOM (BigScience 2022): the pre-LN decoder without position vectors; scores fall with the distance instead.

Peculiar to it: ALiBi (Press et al. 2022), by which every head falls at a slope of its own; a LayerNorm right behind
the embeddings; biases everywhere; gelu in its tanh form; the head is the embedding table. In its files q, k and v are
one matrix, in which the rows of head 0 come first, then those of head 1: q, k and v of each. Differs from
transformers: there the constant of gelu's tanh form is cut after eight digits, which moves the logits by about 2e-10.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _legacy_names, _megatron, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.alibi import Alibi
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "BloomForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(250880),
    "hidden_size": size(64),
    "n_layer": size(2),
    "n_head": 8,
    "seq_length": 2048,
    "layer_norm_epsilon": 1e-5,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    "pretraining_tp": 1,
    "slow_but_exact": False,
}
TINY = {"vocab_size": 61, "hidden_size": 24, "n_layer": 2, "n_head": 3, "seq_length": 48}
_FIXED = {"apply_residual_connection_post_layernorm": False}
_ALIASES = {"n_embed": "hidden_size", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
_IGNORED = (
    "attention_softmax_in_fp32", "masked_softmax_fusion", "bias_dropout_fusion",
    "offset_alibi", "skip_bias_add*", "n_inner", "unk_token_id",
)  # fmt: skip


def _read(config: Mapping[str, Any]) -> Config:
    return Config("bloom", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    if c["slow_but_exact"] and c["pretraining_tp"] > 1:
        raise ModelFileError(
            f"bloom: slow_but_exact = true with pretraining_tp = {c['pretraining_tp']} is not supported",
            "transformers then leaves two biases of every layer out; set slow_but_exact to false",
        )
    heads, norm = c["n_head"], LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("hidden_size", "n_head"),
        biases=_parts.biases(),
        scoring=ScoreSettings(dropout=c["attention_dropout"]),
        position="alibi",
    )
    feed_forward = MLP.Spec(hidden=4 * c["hidden_size"], activation="gelu_tanh")
    branches = {"attention": attention, "feed_forward": feed_forward}
    block = _parts.sequential(branches, pre=norm, dropout=c["hidden_dropout"])
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


LEGACY_NAMES = _legacy_names.headless("transformer.", "word_embeddings", "word_embeddings_layernorm", "h", "ln_f")


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; where q, k and v lie depends on the number of heads."""
    layer = "transformer.h.{i}"
    return (
        rename("transformer.word_embeddings.weight", "embed.token.weight"),
        *_megatron.branches(layer, "self_attention", _read(config)["n_head"]),
        *renames(layer, "stack.blocks.{i}", _decoders.PRE_NORMS),
        *renames("transformer", "stack", (("word_embeddings_layernorm", "start"), ("ln_f", "final"))),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
