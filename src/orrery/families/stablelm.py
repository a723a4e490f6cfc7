"""StableLM (Bellagamba et al. 2024): Llama's block with LayerNorm and heads that turn by a quarter.

Peculiar to it: LayerNorm with bias; rotary positions on a quarter of each head; SwiGLU; biases on q, k and v where
``use_qkv_bias`` says so; the head is a table of its own. StableLM 2 12B adds ``qk_layernorm``, a norm of q and k with
a gain for each head, and ``use_parallel_residual``, by which both branches read one norm and are added together.
Differs from transformers: dropout then falls on the sum of the branches, not on the feed-forward alone.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import EachHeadNorm, LayerNorm
from orrery.nn.residual import Identity, Residual, Sum
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "StableLmForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 50304,
    "intermediate_size": 6912,
    "hidden_size": 2560,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "layer_norm_eps": 1e-5,
    "use_qkv_bias": False,
    "qk_layernorm": False,
    "use_parallel_residual": False,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "partial_rotary_factor": 0.25,
    **_rotary.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "intermediate_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
    "qk_layernorm": True,
    "use_parallel_residual": True,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("stablelm", config, DEFAULTS, ignored=("auto_map",))
    head_width, context = c.divide("hidden_size", "num_attention_heads"), c["max_position_embeddings"]
    eps, biased = c["layer_norm_eps"], c["use_qkv_bias"]
    norm = LayerNorm.Spec(eps=eps)
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_key_value_heads"] or c["num_attention_heads"],
        head_width=head_width,
        biases=Biases(q=biased, k=biased, v=biased),
        scoring=Scoring(dropout=c["attention_dropout"]),
        qk_norm=EachHeadNorm.Spec(head_width=head_width, eps=eps) if c["qk_layernorm"] else Identity.Spec(),
        position="rotary",
    )
    feed_forward = GatedMLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"))
    if c["use_parallel_residual"]:
        parallel = Sum.Spec(branches={"attention": attention, "feed_forward": feed_forward})
        residuals = {"parallel": Residual.Spec(branch=parallel, pre=norm, dropout=c["hidden_dropout"])}
    else:
        residuals = {
            "attention": Residual.Spec(branch=attention, pre=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=c["hidden_dropout"]),
        }
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(Block.Spec(residuals=residuals), c["num_hidden_layers"]),
            final=norm,
            positions={"rotary": _rotary.rotary(c, head_width, context, share=c["partial_rotary_factor"])},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


_BLOCK, _THEIRS = "stack.blocks.{i}", "model.layers.{i}"
_ATTENTIONS = ("parallel.branch.attention", "attention.branch")
_FEED_FORWARDS = ("parallel.branch.feed_forward", "feed_forward.branch")
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *renames(
        _THEIRS,
        _BLOCK,
        (
            *(("input_layernorm", norm) for norm in ("parallel.pre", "attention.pre")),
            *(
                (f"self_attn.{theirs}_proj", f"{attention}.{ours}")
                for attention in _ATTENTIONS
                for theirs, ours in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out"))
            ),
            ("post_attention_layernorm", "feed_forward.pre"),
            *((f"mlp.{x}_proj", f"{branch}.{x}") for branch in _FEED_FORWARDS for x in ("gate", "up", "down")),
        ),
    ),
    *(
        rename(f"{_THEIRS}.self_attn.{x}_layernorm.norms.{{x}}.weight", f"{_BLOCK}.{attention}.{x}_norm.gains.{{x}}")
        for attention in _ATTENTIONS
        for x in "qk"
    ),
    *renames("model", "stack", (("norm", "final"),)),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
