"""Phi-3 and Phi-3.5 mini (Abdin et al. 2024): Llama's block with fused matrices.

Peculiar to it: RMSNorm in front of each sublayer; rotary positions; SwiGLU; no biases; perhaps a sliding window; the
head is a table of its own. In its files q, k and v are one matrix, and so are gate and up. The long-context models
turn their heads by ``longrope``, which is refused by name; so is ``yarn``, by which old files mean the same.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Window
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "Phi3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 32064,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "resid_pdrop": 0.0,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "partial_rotary_factor": 1.0,
    **_rotary.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
    "sliding_window": 9,
}
_FIXED = {"attention_bias": False}
_IGNORED = ("embd_pdrop", "original_max_position_embeddings", "auto_map")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("phi3", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    heads, context, dropout = c["num_attention_heads"], c["max_position_embeddings"], c["resid_pdrop"]
    head_width, norm = c.divide("hidden_size", "num_attention_heads"), RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=c["num_key_value_heads"] or heads,
        head_width=head_width,
        scoring=Scoring(dropout=c["attention_dropout"]),
        position="rotary",
    )
    feed_forward = GatedMLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm, dropout=dropout),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
        }
    )
    rotary = _rotary.rotary(c, head_width, context, share=c["partial_rotary_factor"], kinds=("default",))
    window = c["sliding_window"]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["num_hidden_layers"]),
            final=norm,
            positions={"rotary": rotary},
            masks={"causal": Causal() if window is None else Causal() & Window(length=window)},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


_BLOCK, _THEIRS = "stack.blocks.{i}", "model.layers.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    fused(f"{_THEIRS}.self_attn.qkv_proj.weight", tuple(f"{_BLOCK}.attention.branch.{x}.weight" for x in "qkv")),
    fused(
        f"{_THEIRS}.mlp.gate_up_proj.weight",
        tuple(f"{_BLOCK}.feed_forward.branch.{x}.weight" for x in ("gate", "up")),
    ),
    *renames(
        _THEIRS,
        _BLOCK,
        (
            ("input_layernorm", "attention.pre"),
            ("self_attn.o_proj", "attention.branch.out"),
            ("post_attention_layernorm", "feed_forward.pre"),
            ("mlp.down_proj", "feed_forward.branch.down"),
        ),
        ends=("weight",),
    ),
    rename("model.norm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
