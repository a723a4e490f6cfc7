"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023): attention and feed-forward side by side.

Peculiar to it: both branches read the stream at once, each through a LayerNorm of its own, and are added to it
together (``use_parallel_residual``; without it the block is pre-LN as usual); rotary positions on the first quarter
of each head; biases everywhere; the head is a table of its own. In its files q, k and v are one matrix, head by head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import ByGroup
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _old, _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Dropout, Normed, Residual, Sum
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "GPTNeoXForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 50432,
    "hidden_size": 6144,
    "num_hidden_layers": 44,
    "num_attention_heads": 64,
    "intermediate_size": 24576,
    "hidden_act": "gelu",
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "max_position_embeddings": 2048,
    "layer_norm_eps": 1e-5,
    "use_parallel_residual": True,
    "attention_bias": True,
    "tie_word_embeddings": False,
    "partial_rotary_factor": 0.25,
    **_rotary.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
}
_ALIASES = {"rotary_pct": "partial_rotary_factor", "rotary_emb_base": "rope_theta"}
_FIXED = {"is_decoder": False}
_IGNORED = ("classifier_dropout",)


def _read(config: Mapping[str, Any]) -> Config:
    return Config("gpt_neox", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _read(config)
    heads, biased = c["num_attention_heads"], c["attention_bias"]
    head_width, context = c.divide("hidden_size", "num_attention_heads"), c["max_position_embeddings"]
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=head_width,
        biases=Biases(q=biased, k=biased, v=biased, out=biased),
        scoring=Scoring(dropout=c["attention_dropout"]),
        position="rotary",
    )
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    branches = {"feed_forward": feed_forward, "attention": attention}  # the order in which the reference adds
    if c["use_parallel_residual"]:
        parallel = Sum.Spec(branches={n: Normed.Spec(norm=norm, branch=branch) for n, branch in branches.items()})
        residuals = {"parallel": Residual.Spec(branch=parallel, dropout=c["hidden_dropout"])}
    else:
        order = ("attention", "feed_forward")
        residuals = {n: Residual.Spec(branch=branches[n], pre=norm, dropout=c["hidden_dropout"]) for n in order}
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(Block.Spec(residuals=residuals), c["num_hidden_layers"]),
            final=norm,
            positions={"rotary": _rotary.rotary(c, head_width, context, share=c["partial_rotary_factor"])},
            masks={"causal": Causal()},
            start=Dropout.Spec(rate=c["hidden_dropout"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


OLD = {**_old.CAUSAL, **_old.ROTARY}
_BLOCK, _THEIRS = "stack.blocks.{i}", "gpt_neox.layers.{i}"
_FORMS = (
    ("parallel.branch.attention.branch", "parallel.branch.feed_forward.branch"),
    ("attention.branch", "feed_forward.branch"),
)
_NORMS = (
    ("input_layernorm", "parallel.branch.attention.norm"),
    ("input_layernorm", "attention.pre"),
    ("post_attention_layernorm", "parallel.branch.feed_forward.norm"),
    ("post_attention_layernorm", "feed_forward.pre"),
)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, for both forms; where q, k and v lie depends on the number of heads."""
    heads = ByGroup(_read(config)["num_attention_heads"])
    fused = tuple(
        Rule(
            f"{_THEIRS}.attention.query_key_value.{p}",
            tuple(f"{_BLOCK}.{attention}.{x}.{p}" for x in "qkv"),
            heads,
        )
        for attention, _ in _FORMS
        for p in ("weight", "bias")
    )
    pairs = [("attention.dense", f"{attention}.out") for attention, _ in _FORMS]
    pairs += [("mlp.dense_h_to_4h", f"{feed_forward}.up") for _, feed_forward in _FORMS]
    pairs += [("mlp.dense_4h_to_h", f"{feed_forward}.down") for _, feed_forward in _FORMS]
    return (
        rename("gpt_neox.embed_in.weight", "embed.token.weight"),
        *fused,
        *renames(_THEIRS, _BLOCK, (*_NORMS, *pairs)),
        *renames("gpt_neox", "stack", (("final_layer_norm", "final"),)),
        rename("embed_out.weight", "head.vocabulary.weight"),
    )
