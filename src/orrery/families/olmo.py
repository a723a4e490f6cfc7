"""OLMo 1 (Groeneveld et al. 2024): Llama whose norms learn nothing.

Peculiar to it: LayerNorm without gain and bias, epsilon 1e-5; no bias anywhere; in the models of April 2024 queries,
keys and values are clipped to a bound (``clip_qkv``), after the projection and before the rotation.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _llama, _parts
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.sources import Self
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Identity
from orrery.nn.slots import Clip
from orrery.nn.stack import repeat

ARCHITECTURE = "OlmoForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_llama.DEFAULTS,
    "vocab_size": 50304,
    "clip_qkv": None,
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
    clip = Identity.Spec() if c["clip_qkv"] is None else Clip.Spec(bound=float(c["clip_qkv"]))
    attention = _llama.attention(
        c, biases=_parts.biases(c["attention_bias"]), qk_norm=clip, source=Self.Spec(values=clip)
    )
    block = _llama.pre_norm(norm, attention, _llama.feed_forward(c))
    return _llama.decoder(c, _llama.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_llama.weights(), *_llama.gated_weights())
