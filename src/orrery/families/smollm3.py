"""SmolLM3 (Hugging Face 2025): Llama in which every fourth layer has no positions.

Peculiar to it: layers 3, 7, 11, ... turn nothing (NoPE; Yang et al. 2025), as ``no_rope_layers`` lists with 0 or
``no_rope_layer_interval`` counts; the others are rotary. Windows are possible, and stand in the layers without
positions unless ``layer_types`` lists others. A tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families import _decoders, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import RMSNorm

ARCHITECTURE = "SmolLM3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(128256),
    "hidden_size": size(2048),
    "num_hidden_layers": size(36),
    "num_attention_heads": size(16),
    "num_key_value_heads": size(4, null=True),
    "max_position_embeddings": 32768,
    "no_rope_layers": items(),
    "no_rope_layer_interval": size(4),
    "use_sliding_window": False,
    "sliding_window": count(None),
    "layer_types": items(),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "rope_theta": positive(2_000_000.0),
}
TINY = {**_decoders.TINY, "no_rope_layer_interval": 2}
_IGNORED = ("max_window_layers",)


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("smollm3", config, DEFAULTS, ignored=_IGNORED)
    norm, feed_forward = RMSNorm.Spec(eps=c["rms_norm_eps"]), _decoders.feed_forward(c, bias=c["mlp_bias"])
    turns = _turns(c)
    windows = c["use_sliding_window"] and c["sliding_window"] is not None
    usual = [_windows.SLIDING if windows and not turn else _windows.FULL for turn in turns]
    names, masks = _windows.by_layer(c, usual, c["sliding_window"])
    attentions = (
        _decoders.attention(
            c, biases=_parts.biases(c["attention_bias"]), position="rotary" if turn else "none", mask=name
        )
        for turn, name in zip(turns, names, strict=True)
    )
    blocks = [_decoders.pre_norm(norm, attention, feed_forward) for attention in attentions]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


def _turns(c: Config) -> list[bool]:
    """Return, for every layer, whether it has positions.

    Raises:
        ModelFileError: fewer entries than layers.
    """
    layers, every = c["num_hidden_layers"], c["no_rope_layer_interval"]
    listed = c["no_rope_layers"]
    if listed is None:
        listed = [i % every != 0 for i in range(1, layers + 1)]
    if len(listed) < layers:
        raise ModelFileError(
            f"smollm3: no_rope_layers lists {len(listed)} layers, num_hidden_layers is {layers}", "list every layer"
        )
    return [bool(turn) for turn in listed[:layers]]


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_decoders.gated_weights())
