"""StarCoder 2 (Lozhkov et al. 2024): a decoder for code with few key-value heads and a sliding window.

Peculiar to it: LayerNorm with bias; rotary positions with a large base; grouped heads; every layer looks back a window
only, where there is one; a plain feed-forward network with gelu in its tanh form; biases everywhere; the head is the
embedding table.
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
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal, Window
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Dropout, Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "Starcoder2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 49152,
    "hidden_size": 3072,
    "intermediate_size": 12288,
    "num_hidden_layers": 30,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "head_dim": None,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 4096,
    "norm_epsilon": 1e-5,
    "sliding_window": None,
    "attention_dropout": 0.0,
    "residual_dropout": 0.0,
    "embedding_dropout": 0.0,
    "use_bias": True,
    "tie_word_embeddings": True,
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
_FIXED = {"mlp_type": "default", "norm_type": "layer_norm", "scale_attn_weights": True}
_IGNORED = ("activation_function", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("starcoder2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    biased, context, dropout = c["use_bias"], c["max_position_embeddings"], c["residual_dropout"]
    head_width = c["head_dim"] or c.divide("hidden_size", "num_attention_heads")
    norm, window = LayerNorm.Spec(eps=c["norm_epsilon"]), c["sliding_window"]
    attention = MultiHeadAttention.Spec(
        heads=c["num_attention_heads"],
        kv_heads=c["num_key_value_heads"] or c["num_attention_heads"],
        head_width=head_width,
        biases=Biases(q=biased, k=biased, v=biased, out=biased),
        scoring=Scoring(dropout=c["attention_dropout"]),
        position="rotary",
    )
    feed_forward = MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act"), bias=biased)
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, pre=norm, dropout=dropout),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
        }
    )
    return Decoder.Spec(
        width=c["hidden_size"],
        context=context,
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["num_hidden_layers"]),
            final=norm,
            positions={"rotary": _rotary.rotary(c, head_width, context)},
            masks={"causal": Causal() if window is None else Causal() & Window(length=window)},
            start=Dropout.Spec(rate=c["embedding_dropout"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *renames(
        "model.layers.{i}",
        "stack.blocks.{i}",
        (
            ("input_layernorm", "attention.pre"),
            *((f"self_attn.{x}_proj", f"attention.branch.{x}") for x in "qkv"),
            ("self_attn.o_proj", "attention.branch.out"),
            ("post_attention_layernorm", "feed_forward.pre"),
            ("mlp.c_fc", "feed_forward.branch.up"),
            ("mlp.c_proj", "feed_forward.branch.down"),
        ),
    ),
    *renames("model", "stack", (("norm", "final"),)),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
