"""MPT (MosaicML 2023): a pre-LN decoder with ALiBi and no bias anywhere, not even in the norms.

Peculiar to it: ALiBi; LayerNorm with a gain alone; exact gelu; the head is the embedding table. In its files q, k and
v are one matrix, one below the other; the settings of the attention are a table inside the configuration; queries, keys
and values may be clipped to a bound (``clip_qkv``). As in transformers, the reach of ALiBi is always 8: it reads past
``alibi_bias_max``, by which the makers' own code stretches the slopes (16 in StoryWriter).
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import size, table
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention, ScoreSettings
from orrery.nn.attention.sources import SelfSource
from orrery.nn.elementwise import Clamp
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.alibi import Alibi
from orrery.nn.residual import Identity
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "MptForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50368),
    "d_model": size(2048),
    "n_heads": 16,
    "n_layers": size(24),
    "max_seq_len": 2048,
    "layer_norm_epsilon": 1e-5,
    "attn_config": table(),
    "tie_word_embeddings": True,
}
_ATTENTION: Mapping[str, Any] = {"attn_pdrop": 0.0, "softmax_scale": None, "clip_qkv": None}
TINY = {"vocab_size": 61, "d_model": 24, "n_heads": 3, "n_layers": 2, "max_seq_len": 48}
_FIXED = {"expansion_ratio": 4, "no_bias": True, "logit_scale": None}
_FIXED_ATTENTION = {
    "attn_type": "multihead_attention", "prefix_lm": False, "qk_ln": False, "alibi": True,
    "attn_uses_sequence_id": False,
}  # fmt: skip
_ALIASES = {"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
_IGNORED = (
    "resid_pdrop", "emb_pdrop", "learned_pos_emb", "init_device", "init_config", "embedding_fraction", "norm_type",
    "verbose", "tokenizer_name",
)  # fmt: skip
_IGNORED_ATTENTION = ("attn_impl", "alibi_bias_max")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mpt", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)
    a = Config(
        "mpt: attn_config", c["attn_config"] or {}, _ATTENTION, fixed=_FIXED_ATTENTION, ignored=_IGNORED_ATTENTION
    )
    heads, dropout = c["n_heads"], a["attn_pdrop"]
    norm = LayerNorm.Spec(eps=c["layer_norm_epsilon"], bias=False)
    clip = Clamp.Spec(bound=float(a["clip_qkv"])) if a["clip_qkv"] else Identity.Spec()
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=c.divide("d_model", "n_heads"),
        scoring=ScoreSettings(scale=a["softmax_scale"], dropout=dropout),
        qk_norm=clip,
        source=SelfSource.Spec(values=clip),
        position="alibi",
    )
    feed_forward = MLP.Spec(hidden=4 * c["d_model"], bias=False)
    block = _parts.sequential({"attention": attention, "feed_forward": feed_forward}, pre=norm, dropout=dropout)
    return Decoder.Spec(
        width=c["d_model"],
        context=c["max_seq_len"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["n_layers"]),
            final=norm,
            positions={"alibi": Alibi.Spec(heads=heads)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


_BLOCK, _THEIRS = "stack.blocks.{i}", "transformer.blocks.{i}"
WEIGHTS: tuple[Rule, ...] = (
    rename("transformer.wte.weight", "embed.token.weight"),
    fused(f"{_THEIRS}.attn.Wqkv.weight", tuple(f"{_BLOCK}.attention.branch.{x}.weight" for x in "qkv")),
    *renames(
        _THEIRS,
        _BLOCK,
        (
            ("norm_1", "attention.pre"),
            ("attn.out_proj", "attention.branch.out"),
            ("norm_2", "feed_forward.pre"),
            ("ffn.up_proj", "feed_forward.branch.up"),
            ("ffn.down_proj", "feed_forward.branch.down"),
        ),
        ends=("weight",),
    ),
    rename("transformer.norm_f.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
