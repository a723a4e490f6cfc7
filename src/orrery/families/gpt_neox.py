"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023): attention and feed-forward side by side.

Peculiar to it: both branches read the stream at once, each through a LayerNorm of its own, and are added to it
together (``use_parallel_residual``; without it the block is pre-LN as usual); rotary positions on the first quarter
of each head; biases everywhere; the head is a table of its own. In its files q, k and v are one matrix, head by head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _legacy_names, _megatron, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import positive, size, table
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Dropout, Normed
from orrery.nn.stack import repeat

ARCHITECTURE = "GPTNeoXForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50432),
    "hidden_size": size(6144),
    "num_hidden_layers": size(44),
    "num_attention_heads": size(64),
    "intermediate_size": size(24576),
    "hidden_act": "gelu",
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "max_position_embeddings": 2048,
    "layer_norm_eps": 1e-5,
    "use_parallel_residual": True,
    "attention_bias": True,
    "tie_word_embeddings": False,
    "rotary_pct": positive(0.25),
    "rotary_emb_base": positive(10_000.0),
    "rope_scaling": table(),
    "rope_parameters": table(),
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
}
_FIXED = {"is_decoder": False}
_IGNORED = ("classifier_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob")
"""The last two stand in the file of the 20B model, and nothing has ever read them."""


def _read(config: Mapping[str, Any]) -> Config:
    return Config("gpt_neox", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    norm, dropout = LayerNorm.Spec(eps=c["layer_norm_eps"]), c["hidden_dropout"]
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    if c["use_parallel_residual"]:
        branches = {"feed_forward": feed_forward, "attention": attention}  # the order in which the reference adds
        normed = {name: Normed.Spec(norm=norm, branch=branch) for name, branch in branches.items()}
        block = _parts.parallel(normed, dropout=dropout)
    else:
        block = _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm, dropout=dropout)
    stack = _decoders.stack(
        c,
        repeat(block, c["num_hidden_layers"]),
        norm,
        positions={"rotary": _positions(c)},
        start=Dropout.Spec(rate=dropout),
    )
    return _decoders.decoder(c, stack)


def _positions(c: Config) -> Rotary.Spec:
    """Return the rotary positions, whose base and share of a head have names of their own."""
    given, width = c["rope_scaling"] or c["rope_parameters"] or {}, _decoders.head_width(c)
    base, context = c["rotary_emb_base"], c["max_position_embeddings"]
    return _rotary.from_settings(c.family, given, base, width, context, share=c["rotary_pct"])


LEGACY_NAMES = {**_legacy_names.CAUSAL, **_legacy_names.ROTARY}
_PLACES = (
    ("parallel.branch.attention.branch", "parallel.branch.feed_forward.branch"),
    ("attention.branch", "feed_forward.branch"),
)
_NORMS = (
    ("input_layernorm", "parallel.branch.attention.norm"),
    ("post_attention_layernorm", "parallel.branch.feed_forward.norm"),
    *_decoders.PRE_NORMS,
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, for both forms; where q, k and v lie depends on the number of heads."""
    layer = "gpt_neox.layers.{i}"
    return (
        rename("gpt_neox.embed_in.weight", "embed.token.weight"),
        *_megatron.branches(layer, "attention", _read(config)["num_attention_heads"], _PLACES),
        *renames(layer, "stack.blocks.{i}", _NORMS),
        *renames("gpt_neox", "stack", (("final_layer_norm", "final"),)),
        rename("embed_out.weight", "head.vocabulary.weight"),
    )
