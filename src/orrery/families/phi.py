"""Phi-1, 1.5 and 2 (Gunasekar et al. 2023; Li et al. 2023): GPT-J's parallel block with biases everywhere.

Peculiar to it: attention and feed-forward read the same normed stream and are added to it together; rotary positions
on a part of each head (half, in Phi-2 four tenths); LayerNorm with bias; gelu in its tanh form; a head of its own, with
a bias. ``qk_layernorm`` normalises every head of q and k.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _parts, _rotary
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import HeadNorm, LayerNorm
from orrery.nn.residual import Dropout, Identity
from orrery.nn.stack import repeat

ARCHITECTURE = "PhiForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(51200),
    "hidden_size": size(2048),
    "intermediate_size": size(8192),
    "num_hidden_layers": size(24),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(None),
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attention_dropout": 0.0,
    "hidden_act": "gelu_new",
    "max_position_embeddings": 2048,
    "layer_norm_eps": 1e-5,
    "qk_layernorm": False,
    "tie_word_embeddings": False,
    "partial_rotary_factor": positive(0.5),
    **_rotary.DEFAULTS,
}
TINY = {**_decoders.TINY, "qk_layernorm": True}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("phi", config, DEFAULTS)
    norm = LayerNorm.Spec(eps=c["layer_norm_eps"])
    head_norm = HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)) if c["qk_layernorm"] else Identity.Spec()
    branches = {
        "attention": _decoders.attention(c, biases=_parts.biases(), qk_norm=head_norm),
        "feed_forward": MLP.Spec(hidden=c["intermediate_size"], activation=c.activation("hidden_act")),
    }
    block = _parts.parallel(branches, pre=norm, dropout=c["resid_pdrop"])
    stack = _decoders.stack(
        c,
        repeat(block, c["num_hidden_layers"]),
        norm,
        positions={"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"])},
        start=Dropout.Spec(rate=c["embd_pdrop"]),
    )
    return _decoders.decoder(c, stack, bias=True)


WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *renames(
        "model.layers.{i}",
        "stack.blocks.{i}.parallel",
        (
            ("input_layernorm", "pre"),
            *((f"self_attn.{x}_proj", f"branch.attention.{x}") for x in "qkv"),
            ("self_attn.dense", "branch.attention.out"),
            *((f"self_attn.{x}_layernorm", f"branch.attention.{x}_norm.norm") for x in "qk"),
            ("mlp.fc1", "branch.feed_forward.up"),
            ("mlp.fc2", "branch.feed_forward.down"),
        ),
    ),
    *renames("model", "stack", (("final_layernorm", "final"),)),
    *(rename(f"lm_head.{p}", f"head.vocabulary.{p}") for p in ("weight", "bias")),
)
