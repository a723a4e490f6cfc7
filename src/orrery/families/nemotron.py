"""Nemotron 3 and 4, Minitron (Parmar et al. 2024): LayerNorm, half a rotation and the squared relu.

Peculiar to it: LayerNorm with bias whose gain is stored minus one; rotary positions on the first half of each head
(``partial_rotary_factor``); a feed-forward network without a gate, ``down(relu(up(x))^2)``.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import LayerNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "NemotronForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(256000),
    "hidden_size": size(6144),
    "intermediate_size": size(24576),
    "num_attention_heads": size(48),
    "hidden_act": "relu2",
    "max_position_embeddings": 4096,
    "norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
    "partial_rotary_factor": positive(0.5),
}
TINY = _decoders.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("nemotron", config, DEFAULTS)
    norm = LayerNorm.Spec(eps=c["norm_eps"], offset=1.0)
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))
    block = _decoders.pre_norm(norm, attention, _decoders.plain_feed_forward(c, bias=c["mlp_bias"]))
    positions = {"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"])}
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions=positions))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.plain_weights())
