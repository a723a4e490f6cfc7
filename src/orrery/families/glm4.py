"""GLM-4 of 2025 (GLM-4-0414; Team GLM 2024): norms on both sides and half a rotation.

Peculiar to it: RMSNorm in front of each branch and behind it; rotary positions on the first half of each head, pairing
neighbouring channels; biases on queries, keys and values only; two key-value heads. In its files gate and up are one
matrix, gate first.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.families import _decoders
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "Glm4ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151552),
    "intermediate_size": size(13696),
    "num_hidden_layers": size(40),
    "num_key_value_heads": size(2, null=True),
    "head_dim": size(128, null=True),
    "max_position_embeddings": 131072,
    "partial_rotary_factor": positive(0.5),
    "rms_norm_eps": 1.5625e-7,
    "attention_bias": True,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("glm4", config, DEFAULTS)
    norm, biased = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["attention_bias"]
    attention = _decoders.attention(c, biases=Biases(q=biased, k=biased, v=biased))
    block = _decoders.sandwich(norm, attention, _decoders.feed_forward(c))
    neighbours = replace(_decoders.rotary(c, share=c["partial_rotary_factor"]), interleaved=True)
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions={"rotary": neighbours})
    return _decoders.decoder(c, stack)


_NORMS = (
    ("input_layernorm", "attention.pre"),
    ("post_self_attn_layernorm", "attention.post"),
    ("post_attention_layernorm", "feed_forward.pre"),
    ("post_mlp_layernorm", "feed_forward.post"),
)
WEIGHTS = (*_decoders.weights(*_NORMS), *_decoders.fused_gated_weights())
