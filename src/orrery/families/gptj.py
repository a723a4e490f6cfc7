"""GPT-J (Wang and Komatsuzaki 2021): the first large open decoder with parallel branches.

Peculiar to it: attention and feed-forward read the same normed stream and are added to it together; rotary positions
on the first ``rotary_dim`` channels of each head, with neighbours paired as in the paper; the attention has no biases,
the feed-forward and the head have; gelu in its tanh form; the head is a table of its own.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _old
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, Scoring
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Dropout, Residual, Sum
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "GPTJForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 50400,
    "n_positions": 2048,
    "n_embd": 4096,
    "n_layer": 28,
    "n_head": 16,
    "rotary_dim": 64,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": False,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3, "rotary_dim": 4}
_FIXED = {"rotary": True, "scale_attn_weights": True}
_IGNORED = ("summary_*", "gradient_checkpointing")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gptj", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    width, heads = c["n_embd"], c["n_head"]
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("n_embd", "n_head"),
        scoring=Scoring(dropout=c["attn_pdrop"]),
        position="rotary",
    )
    feed_forward = MLP.Spec(hidden=c["n_inner"] or 4 * width, activation=c.activation("activation_function"))
    parallel = Sum.Spec(branches={"attention": attention, "feed_forward": feed_forward})
    block = Block.Spec(residuals={"parallel": Residual.Spec(branch=parallel, pre=norm, dropout=c["resid_pdrop"])})
    return Decoder.Spec(
        width=width,
        context=c["n_positions"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layer"]),
            final=norm,
            positions={"rotary": Rotary.Spec(width=c["rotary_dim"], interleaved=True)},
            masks={"causal": Causal()},
            start=Dropout.Spec(rate=c["embd_pdrop"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=True),
    )


OLD = _old.CAUSAL
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    *renames(
        "transformer.h.{i}",
        "stack.blocks.{i}.parallel",
        (
            ("ln_1", "pre"),
            *((f"attn.{x}_proj", f"branch.attention.{x}") for x in ("q", "k", "v", "out")),
            ("mlp.fc_in", "branch.feed_forward.up"),
            ("mlp.fc_out", "branch.feed_forward.down"),
        ),
    ),
    *renames("transformer", "stack", (("ln_f", "final"),)),
    *(rename(f"lm_head.{p}", f"head.vocabulary.{p}") for p in ("weight", "bias")),
)
