"""GPT, the first (Radford et al. 2018): the decoder half of the original Transformer.

Peculiar to it: post-LN, so a LayerNorm behind each residual sum and none at the end; learned positions; biases
everywhere; gelu in its tanh form, which its configuration calls "gelu"; the head is the embedding table. In its files
q, k and v are one matrix, and every matrix of a block is stored transposed, as in GPT-2's.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
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

MODEL_TYPE = "openai-gpt"
ARCHITECTURE = "OpenAIGPTLMHeadModel"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 40478,
    "n_positions": 512,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "afn": "gelu",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}
TINY = {"vocab_size": 61, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3}
_IGNORED = ("summary_*", "n_ctx", "n_special", "predict_special_tokens")
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("openai-gpt", config, DEFAULTS, ignored=_IGNORED)
    if c["afn"] not in _ACTIVATIONS:
        raise ModelFileError(f"openai-gpt: afn = {c['afn']!r} is not known", f"known: {', '.join(_ACTIVATIONS)}")
    width, heads = c["n_embd"], c["n_head"]
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"])
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("n_embd", "n_head"),
        biases=Biases(q=True, k=True, v=True, out=True),
        scoring=Scoring(dropout=c["attn_pdrop"]),
    )
    feed_forward = MLP.Spec(hidden=4 * width, activation=_ACTIVATIONS[c["afn"]])
    block = Block.Spec(
        residuals={
            "attention": Residual.Spec(branch=attention, out=norm, dropout=c["resid_pdrop"]),
            "feed_forward": Residual.Spec(branch=feed_forward, out=norm, dropout=c["resid_pdrop"]),
        }
    )
    return Decoder.Spec(
        width=width,
        context=c["n_positions"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layer"]),
            positions={"learned": LearnedPositions.Spec(length=c["n_positions"])},
            masks={"causal": Causal()},
            start=Dropout.Spec(rate=c["embd_pdrop"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


OLD = {**_old.headless("transformer.", "tokens_embed", "positions_embed", "h"), **_old.CAUSAL}
_BLOCK, _THEIRS = "stack.blocks.{i}", "transformer.h.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.tokens_embed.weight", "embed.token.weight"),
    rename("transformer.positions_embed.weight", "stack.positions.learned.table.weight"),
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
    *renames(_THEIRS, _BLOCK, (("ln_1", "attention.out"), ("ln_2", "feed_forward.out"))),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
