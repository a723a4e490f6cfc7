"""StableLM (Bellagamba et al. 2024): Llama's block with LayerNorm and heads that turn by a quarter.

Peculiar to it: LayerNorm with bias; rotary positions on a quarter of each head; SwiGLU; biases on q, k and v where
``use_qkv_bias`` says so; the head is a table of its own. StableLM 2 12B adds ``qk_layernorm``, a norm of q and k with
a gain for each head, and ``use_parallel_residual``, by which both branches read one norm and are added together.
Differs from transformers: dropout then falls on the sum of the branches, not on the feed-forward alone.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _decoders, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.block import Block
from orrery.nn.norms import LayerNorm, PerHeadNorm
from orrery.nn.residual import Identity, Residual
from orrery.nn.stack import repeat

ARCHITECTURE = "StableLmForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50304),
    "intermediate_size": size(6912),
    "hidden_size": size(2560),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(32, null=True),
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "layer_norm_eps": 1e-5,
    "use_qkv_bias": False,
    "qk_layernorm": False,
    "use_parallel_residual": False,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "partial_rotary_factor": positive(0.25),
    **_rotary.DEFAULTS,
}
TINY = {
    **_decoders.TINY,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "qk_layernorm": True,
    "use_parallel_residual": True,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("stablelm", config, DEFAULTS)
    eps, biased, dropout = c["layer_norm_eps"], c["use_qkv_bias"], c["hidden_dropout"]
    norm = LayerNorm.Spec(eps=eps)
    head_norm = PerHeadNorm.Spec(head_width=_decoders.head_width(c), eps=eps) if c["qk_layernorm"] else Identity.Spec()
    attention = _decoders.attention(c, biases=Biases(q=biased, k=biased, v=biased), qk_norm=head_norm)
    feed_forward = _decoders.feed_forward(c)
    if c["use_parallel_residual"]:
        block = _parts.parallel({"attention": attention, "feed_forward": feed_forward}, pre=norm, dropout=dropout)
    else:
        residuals = {
            "attention": Residual.Spec(branch=attention, pre=norm),
            "feed_forward": Residual.Spec(branch=feed_forward, pre=norm, dropout=dropout),
        }
        block = Block.Spec(residuals=residuals)
    rotary = _decoders.rotary(c, share=c["partial_rotary_factor"])
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions={"rotary": rotary})
    return _decoders.decoder(c, stack)


_ATTENTIONS = ("parallel.branch.attention", "attention.branch")
_FEED_FORWARDS = ("parallel.branch.feed_forward", "feed_forward.branch")
WEIGHTS: tuple[Rule, ...] = (
    *_decoders.frame(("input_layernorm", "parallel.pre"), *_decoders.PRE_NORMS),
    *(rule for attention in _ATTENTIONS for rule in _decoders.projections(attention)),
    *(rule for feed_forward in _FEED_FORWARDS for rule in _decoders.gated_weights(feed_forward)),
    *(
        rename(
            f"{_decoders.LAYER}.self_attn.{x}_layernorm.norms.{{x}}.weight",
            f"{_decoders.BLOCK}.{attention}.{x}_norm.gains.{{x}}",
        )
        for attention in _ATTENTIONS
        for x in "qk"
    ),
)
