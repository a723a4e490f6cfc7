"""Helium 1 (Kyutai 2025): Llama that turns neighbouring channels.

Peculiar to it: rotary positions pair channels 2i and 2i + 1, base 100,000; an epsilon of 1e-8; where queries, keys and
values have biases, the output has none.
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

ARCHITECTURE = "HeliumForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(48000),
    "hidden_size": size(2560),
    "intermediate_size": size(7040),
    "num_hidden_layers": size(24),
    "num_attention_heads": size(20),
    "num_key_value_heads": size(20),
    "head_dim": size(128),
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-8,
    "attention_bias": False,
    "mlp_bias": False,
    "rope_theta": positive(100_000.0),
}
TINY = {**_decoders.TINY, "head_dim": 4}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("helium", config, DEFAULTS)
    norm, biased = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["attention_bias"]
    attention = _decoders.attention(c, biases=Biases(q=biased, k=biased, v=biased))
    block = _decoders.pre_norm(norm, attention, _decoders.feed_forward(c, bias=c["mlp_bias"]))
    positions = {"rotary": replace(_decoders.rotary(c), interleaved=True)}
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions=positions))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
