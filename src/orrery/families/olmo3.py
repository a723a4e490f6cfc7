"""OLMo 3 (OLMo Team 2025): OLMo 2 with windows in three of four layers.

Peculiar to it: norms behind the branches and on queries and keys, all heads together, as in OLMo 2; windows; the
rotation is rescaled where a layer sees everything, and nowhere else.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm

ARCHITECTURE = "Olmo3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(50304),
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "sliding_window": count(4096, null=True),
    "layer_types": items(),
    "rope_theta": positive(500_000.0),
}
TINY = {
    **_decoders.TINY,
    "sliding_window": 5,
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("olmo3", config, DEFAULTS)
    norm, biases = RMSNorm.Spec(eps=c["rms_norm_eps"]), _parts.biases(c["attention_bias"])
    usual = [_windows.SLIDING if i % 4 else _windows.FULL for i in range(1, c["num_hidden_layers"] + 1)]
    names, masks = _windows.by_layer(c, usual, c["sliding_window"])
    attentions = [_decoders.attention(c, mask=name, position=name, biases=biases, qk_norm=norm) for name in names]
    blocks = [_decoders.post_norm(norm, attention, _decoders.feed_forward(c)) for attention in attentions]
    # The reference gives an old file's rope_theta to the layers that see everything, and to no other.
    bases = {_windows.FULL: c["rope_theta"], _windows.SLIDING: 500_000.0}
    positions = _windows.positions(c, bases)
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=positions, masks=masks))


WEIGHTS = (*_decoders.weights(*_decoders.POST_NORMS, *_decoders.QK_NORMS), *_decoders.gated_weights())
