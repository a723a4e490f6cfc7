"""Qwen 3, the dense models (Yang et al. 2025): Llama with normed queries and keys.

Peculiar to it: RMSNorm on each head of q and of k before the rotation, one gain for all heads; a head width of its own,
so that the heads together may be wider than the model. The biases of Qwen 2 are gone; windows are read as there.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts, _windows, qwen2
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm, RMSNorm

ARCHITECTURE = "Qwen3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **qwen2.DEFAULTS,
    "head_dim": size(128, null=True),
    "attention_bias": False,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("qwen3", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    fields = {
        "biases": _parts.biases(c["attention_bias"]),
        "qk_norm": HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)),
    }
    names, masks = _windows.from_some_layer_on(c)
    feed_forward = _decoders.feed_forward(c)
    blocks = [_decoders.pre_norm(norm, _decoders.attention(c, mask=name, **fields), feed_forward) for name in names]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS, *_decoders.HEAD_NORMS), *_decoders.gated_weights())
