"""OLMo 2 (OLMo Team 2025): Llama with its norms behind the branches.

Peculiar to it: RMSNorm on what a branch puts out, none on what goes in, ``x + norm(branch(x))``; RMSNorm on queries
and on keys before the rotation, over all heads together.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "Olmo2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(50304),
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
}
TINY = _decoders.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("olmo2", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), qk_norm=norm)
    block = _decoders.post_norm(norm, attention, _decoders.feed_forward(c))
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm))


WEIGHTS = (*_decoders.weights(*_decoders.POST_NORMS, *_decoders.QK_NORMS), *_decoders.gated_weights())
