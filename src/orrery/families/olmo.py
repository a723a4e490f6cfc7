"""OLMo 1 (Groeneveld et al. 2024): Llama whose norms learn nothing.

Peculiar to it: LayerNorm without gain and bias, epsilon 1e-5; no bias anywhere; in the models of April 2024 queries,
keys and values are clipped to a bound (``clip_qkv``), after the projection and before the rotation.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import number, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.sources import SelfSource
from orrery.nn.elementwise import Clamp
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Identity
from orrery.nn.stack import repeat

ARCHITECTURE = "OlmoForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(50304),
    "clip_qkv": number(None),
    "attention_bias": False,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 48,
    "clip_qkv": 1.5,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("olmo", config, DEFAULTS)
    norm = LayerNorm.Spec(eps=1e-5, gain=False, bias=False)
    clip = Identity.Spec() if c["clip_qkv"] is None else Clamp.Spec(bound=float(c["clip_qkv"]))
    attention = _decoders.attention(
        c, biases=_parts.biases(c["attention_bias"]), qk_norm=clip, source=SelfSource.Spec(values=clip)
    )
    block = _decoders.pre_norm(norm, attention, _decoders.feed_forward(c))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_decoders.weights(), *_decoders.gated_weights())
