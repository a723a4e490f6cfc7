"""What GPT, GPT-2 and GPT-J share: the keys of their configurations; the first two, matrices stored transposed.

Every function returns the usual spec; the keywords are fields of that spec in which a family differs.
"""

from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Dropout
from orrery.nn.stack import Stack, repeat


def attention(c: Config, **fields: Any) -> MultiHeadAttention.Spec:
    """Return attention with a key-value head for every head, and without biases."""
    usual = {
        "heads": c["n_head"],
        "kv_heads": c["n_head"],
        "head_width": c.divide("n_embd", "n_head"),
        "scoring": ScoreSettings(dropout=c["attn_pdrop"]),
    }
    return MultiHeadAttention.Spec(**{**usual, **fields})


def decoder(c: Config, block: Block.Spec, *, head: LanguageModelHead.Spec | None = None, **fields: Any) -> Decoder.Spec:
    """Return the model of equal blocks with learned positions; the keywords are fields of its stack."""
    usual = {
        "blocks": repeat(block, c["n_layer"]),
        "positions": {"learned": LearnedPositions.Spec(length=c["n_positions"])},
        "masks": {"causal": Causal()},
        "start": Dropout.Spec(rate=c["embd_pdrop"]),
    }
    vocabulary, tied = c["vocab_size"], c["tie_word_embeddings"]
    return Decoder.Spec(
        width=c["n_embd"],
        context=c["n_positions"],
        embed=TokenEmbedding.Spec(vocabulary=vocabulary),
        stack=Stack.Spec(**{**usual, **fields}),
        head=head or LanguageModelHead.Spec(vocabulary=vocabulary, tied=tied),
    )


LAYER, BLOCK = "transformer.h.{i}", "stack.blocks.{i}"
"""What the names of a layer begin with, theirs and ours."""

_TURNED = (
    ("attn.c_proj", "attention.branch.out"),
    ("mlp.c_fc", "feed_forward.branch.up"),
    ("mlp.c_proj", "feed_forward.branch.down"),
)


def _branches(end: str) -> tuple[Rule, ...]:
    turned, parts = end == "weight", tuple(f"{BLOCK}.attention.branch.{x}.{end}" for x in "qkv")
    return (
        fused(f"{LAYER}.attn.c_attn.{end}", parts, transpose=turned),
        *(rename(f"{LAYER}.{a}.{end}", f"{BLOCK}.{b}.{end}", transpose=turned) for a, b in _TURNED),
    )


BRANCHES = (*_branches("weight"), *_branches("bias"))
"""Both branches as GPT and GPT-2 store them: transposed, the layout of a width-one convolution; q, k and v in one."""
