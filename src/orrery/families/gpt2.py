"""GPT-2 (Radford et al. 2019): the pre-LN decoder with learned positions.

Peculiar to it: LayerNorm with bias in front of each sublayer and once at the end; biases everywhere; gelu in its tanh
form; the head is the embedding table. In its files q, k and v are one matrix, and every matrix of a block is stored
transposed (the layout of a width-one convolution).
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename
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
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Dropout, Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "GPT2LMHeadModel"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "tie_word_embeddings": True,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3}
_FIXED = {"scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
_IGNORED = ("reorder_and_upcast_attn", "n_ctx", "summary_*")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gpt2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    width, heads = c["n_embd"], c["n_head"]
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("n_embd", "n_head"),
        biases=Biases(q=True, k=True, v=True, out=True),
        scoring=Scoring(scale=None if c["scale_attn_weights"] else 1.0, dropout=c["attn_pdrop"]),
    )
    feed_forward = MLP.Spec(hidden=c["n_inner"] or 4 * width, activation=c.activation("activation_function"))
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm, dropout=c["resid_pdrop"]),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=c["resid_pdrop"]),
        }
    )
    return Decoder.Spec(
        width=width,
        context=c["n_positions"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layer"]),
            final=norm,
            positions={"learned": LearnedPositions.Spec(length=c["n_positions"])},
            masks={"causal": Causal()},
            start=Dropout.Spec(rate=c["embd_pdrop"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


OLD = {**_old.headless("transformer.", "wte", "wpe", "h", "ln_f"), **_old.CAUSAL}
_BLOCK, _THEIRS = "stack.blocks.{i}", "transformer.h.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    rename("transformer.wpe.weight", "stack.positions.learned.table.weight"),
    *(rename(f"{_THEIRS}.ln_1.{p}", f"{_BLOCK}.attention.pre.{p}") for p in ("weight", "bias")),
    *(
        fused(
            f"{_THEIRS}.attn.c_attn.{p}",
            tuple(f"{_BLOCK}.attention.branch.{x}.{p}" for x in "qkv"),
            transpose=p == "weight",
        )
        for p in ("weight", "bias")
    ),
    *(
        rename(f"{_THEIRS}.{theirs}.{p}", f"{_BLOCK}.{ours}.{p}", transpose=p == "weight")
        for theirs, ours in (
            ("attn.c_proj", "attention.branch.out"),
            ("mlp.c_fc", "feed_forward.branch.up"),
            ("mlp.c_proj", "feed_forward.branch.down"),
        )
        for p in ("weight", "bias")
    ),
    *(rename(f"{_THEIRS}.ln_2.{p}", f"{_BLOCK}.feed_forward.pre.{p}") for p in ("weight", "bias")),
    *(rename(f"transformer.ln_f.{p}", f"stack.final.{p}") for p in ("weight", "bias")),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
