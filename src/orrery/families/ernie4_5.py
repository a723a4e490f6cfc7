"""ERNIE 4.5, the dense models (Baidu 2025): Llama that turns neighbouring channels.

Peculiar to it: rotary positions pair channels 2i and 2i + 1, base 500,000; one setting gives every matrix of a layer a
bias (``use_bias``); two key-value heads; a tied head.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "Ernie4_5ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(103424),
    "hidden_size": size(1024),
    "intermediate_size": size(3072),
    "num_hidden_layers": size(18),
    "num_attention_heads": size(16),
    "num_key_value_heads": size(2, null=True),
    "head_dim": size(128, null=True),
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "use_bias": False,
    "tie_word_embeddings": True,
    "rope_theta": positive(500_000.0),
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("ernie4_5", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = _decoders.attention(c, biases=_parts.biases(c["use_bias"]))
    block = _decoders.pre_norm(norm, attention, _decoders.feed_forward(c, bias=c["use_bias"]))
    positions = {"rotary": replace(_decoders.rotary(c), interleaved=True)}
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions=positions))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
