"""Mistral 7B and its successors (Jiang et al. 2023): Llama with a window.

Peculiar to it: every layer looks back ``sliding_window`` tokens, itself among them, so that n layers reach n windows
back and the cache never holds more than a window; later versions have no window (null). The published ones all have
fewer key-value heads than query heads.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _windows
from orrery.families._config import Config
from orrery.families._keys import count, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm
from orrery.nn.stack import repeat

ARCHITECTURE = "MistralForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "intermediate_size": size(14336),
    "num_key_value_heads": size(8, null=True),
    "max_position_embeddings": 131072,
    "sliding_window": count(4096, null=True),
    "rms_norm_eps": 1e-6,
}
TINY = {**_decoders.TINY, "sliding_window": 5}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mistral", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    block = _decoders.pre_norm(norm, _decoders.attention(c), _decoders.feed_forward(c))
    masks = {"causal": _windows.causal(c, c["sliding_window"])}
    return _decoders.decoder(c, _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, masks=masks))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
