"""Llama 1, 2 and 3 (Touvron et al. 2023; Grattafiori et al. 2024): the modern pre-norm decoder.

Peculiar to it: RMSNorm in front of each sublayer and once at the end; rotary positions with channel i paired with
i + C/2; SwiGLU; no biases; fewer key-value heads than query heads from Llama 2 70B on; long contexts by rescaled
rotation (Llama 3.1). Small ones tie the head to the embedding table.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _rotary
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "LlamaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
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
}
_IGNORED = ("pretraining_tp",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("llama", config, DEFAULTS, ignored=_IGNORED)
    heads, biased = c["num_attention_heads"], c["attention_bias"]
    head_width = c["head_dim"] or c.divide("hidden_size", "num_attention_heads")
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=c["num_key_value_heads"] or heads,
        head_width=head_width,
        biases=Biases(q=biased, k=biased, v=biased, out=biased),
        scoring=Scoring(dropout=c["attention_dropout"]),
        position="rotary",
    )
    feed_forward = GatedMLP.Spec(
        hidden=c["intermediate_size"], activation=c.activation("hidden_act"), bias=c["mlp_bias"]
    )
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm),
        }
    )
    context = c["max_position_embeddings"]
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["num_hidden_layers"]),
            final=norm,
            positions={"rotary": _rotary.rotary(c, head_width, context)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


_BLOCK, _THEIRS = "stack.blocks.{i}", "model.layers.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    rename(f"{_THEIRS}.input_layernorm.weight", f"{_BLOCK}.attention.pre.weight"),
    *(
        rename(f"{_THEIRS}.self_attn.{theirs}_proj.{p}", f"{_BLOCK}.attention.branch.{ours}.{p}")
        for theirs, ours in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out"))
        for p in ("weight", "bias")
    ),
    rename(f"{_THEIRS}.post_attention_layernorm.weight", f"{_BLOCK}.feed_forward.pre.weight"),
    *(
        rename(f"{_THEIRS}.mlp.{part}_proj.{p}", f"{_BLOCK}.feed_forward.branch.{part}.{p}")
        for part in ("gate", "up", "down")
        for p in ("weight", "bias")
    ),
    rename("model.norm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
