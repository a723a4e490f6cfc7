"""Llama 1, 2 and 3 (Touvron et al. 2023; Grattafiori et al. 2024): the modern pre-norm decoder.

Peculiar to it: RMSNorm in front of each sublayer and once at the end; rotary positions with channel i paired with
i + C/2; SwiGLU; no biases; fewer key-value heads than query heads from Llama 2 70B on; long contexts by rescaled
rotation (Llama 3.1). Small ones tie the head to the embedding table.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _legacy_names, _parts
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "LlamaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "mlp_bias": False,
}
TINY = _decoders.TINY
_FIXED = {"rope_interleaved": False}
_IGNORED = ("is_llama_config",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("llama", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]))
    block = _decoders.pre_norm(norm, attention, _decoders.feed_forward(c, bias=c["mlp_bias"]))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


LEGACY_NAMES = _legacy_names.ROTARY
WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
