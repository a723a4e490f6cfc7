"""EXAONE 4 (LG AI Research 2025): norms behind the branches, windows that turn and layers that do neither.

Peculiar to it: RMSNorm on what a branch puts out, none on what goes in, as OLMo 2; RMSNorm on each head of q and of k
before the rotation; every fourth layer sees everything and has no positions, the others are rotary under a window. A
model without a window (the small one) turns in every layer.
"""

from collections.abc import Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families import _decoders, _windows
from orrery.families._config import Config
from orrery.families._keys import Key, count, items, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm, RMSNorm

ARCHITECTURE = "Exaone4ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(102400),
    "intermediate_size": size(16384),
    "num_key_value_heads": size(32),
    "rms_norm_eps": 1e-5,
    "sliding_window": count(4096, null=True),
    "sliding_window_pattern": Key(4, ("number", "text"), null=True, zero=False),
    "layer_types": items(),
}
TINY = {
    **_decoders.TINY,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "sliding_window": 5,
    "sliding_window_pattern": 3,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("exaone4", config, DEFAULTS)
    norm, window = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["sliding_window"]
    names, masks = _windows.by_layer(c, _usual(c), window)
    head_norm = HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c))
    blocks = []
    for name in names:
        turns = window is None or name == "local"
        attention = _decoders.attention(c, mask=name, position="rotary" if turns else "none", qk_norm=head_norm)
        blocks.append(_decoders.post_norm(norm, attention, _decoders.feed_forward(c)))
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


def _usual(c: Config) -> list[str]:
    """Return the kinds of layers where no ``layer_types`` are listed.

    Raises:
        ModelFileError: the pattern is no number above zero; of one in letters the reference makes no layers.
    """
    pattern, layers = c["sliding_window_pattern"], c["num_hidden_layers"]
    if c["layer_types"] or c["sliding_window"] is None:
        return [_windows.FULL] * layers
    if not isinstance(pattern, int) or pattern < 1:
        raise ModelFileError(
            f"exaone4: sliding_window_pattern = {pattern!r} says nothing without layer_types",
            "list layer_types, or count to a layer that sees everything",
        )
    return [_windows.SLIDING if i % pattern else _windows.FULL for i in range(1, layers + 1)]


WEIGHTS = (*_decoders.weights(*_decoders.POST_NORMS, *_decoders.HEAD_NORMS), *_decoders.gated_weights())
