"""Qwen 2 and 2.5 (Yang et al. 2024): Llama with biases on queries, keys and values.

Peculiar to it: the three biases, where no other projection has one; windows, if they are switched on at all, in the
layers from ``max_window_layers`` on, or as ``layer_types`` lists them. Published files name a window and switch it off.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import RMSNorm

ARCHITECTURE = "Qwen2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151936),
    "intermediate_size": size(22016),
    "num_key_value_heads": size(32, null=True),
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": count(4096, null=True),
    "max_window_layers": 28,
    "layer_types": items(),
    "rms_norm_eps": 1e-6,
}
TINY = {
    **_decoders.TINY,
    "num_hidden_layers": 3,
    "use_sliding_window": True,
    "sliding_window": 5,
    "max_window_layers": 1,
}
_FIXED = {"use_mrope": False}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("qwen2", config, DEFAULTS, fixed=_FIXED)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    feed_forward, biases = _decoders.feed_forward(c), Biases(q=True, k=True, v=True)
    names, masks = _windows.from_some_layer_on(c)
    blocks = [
        _decoders.pre_norm(norm, _decoders.attention(c, biases=biases, mask=name), feed_forward) for name in names
    ]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
