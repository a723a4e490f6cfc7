"""Arcee's AFM (Arcee AI 2025): Llama with the squared relu.

Peculiar to it: a feed-forward network without a gate, ``down(relu(up(x))^2)`` (So et al. 2021); everything else is
Llama's.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "ArceeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "hidden_size": size(2560),
    "intermediate_size": size(18432),
    "hidden_act": "relu2",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
}
TINY = _decoders.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("arcee", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))
    block = _decoders.pre_norm(norm, attention, _decoders.plain_feed_forward(c, bias=c["mlp_bias"]))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.plain_weights())
