"""Command R7B and A (Cohere 2024, 2025): Command R whose windows turn and whose other layers have no positions.

Peculiar to it: three layers of four look through a window and are rotary, pairing neighbouring channels; the fourth
sees everything and has no positions. As in Command R: attention and feed-forward side by side behind one LayerNorm
without bias, and logits multiplied by ``logit_scale``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.families import _decoders, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import LayerNorm
from orrery.nn.residual import Scale

ARCHITECTURE = "Cohere2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(256000),
    "hidden_size": size(8192),
    "intermediate_size": size(22528),
    "num_hidden_layers": size(40),
    "num_attention_heads": size(64),
    "max_position_embeddings": 8192,
    "logit_scale": 0.0625,
    "layer_norm_eps": 1e-5,
    "attention_bias": False,
    "sliding_window": count(4096, null=True),
    "sliding_window_pattern": size(4),
    "layer_types": items(),
    "tie_word_embeddings": True,
}
TINY = {**_decoders.TINY, "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
_FIXED = {"use_qk_norm": False}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("cohere2", config, DEFAULTS, fixed=_FIXED)
    norm, biases = LayerNorm.Spec(eps=c["layer_norm_eps"], bias=False), _parts.biases(c["attention_bias"])
    layers = range(1, c["num_hidden_layers"] + 1)
    usual = [_windows.SLIDING if i % c["sliding_window_pattern"] else _windows.FULL for i in layers]
    names, masks = _windows.by_layer(c, usual, c["sliding_window"])
    blocks = []
    for name in names:
        attention = _decoders.attention(c, mask=name, position="rotary" if name == "local" else "none", biases=biases)
        branches = {"attention": attention, "feed_forward": _decoders.feed_forward(c)}
        blocks.append(_parts.parallel(branches, pre=norm))
    positions = {"rotary": replace(_decoders.rotary(c), interleaved=True)}
    stack = _decoders.stack(c, blocks, norm, positions=positions, masks=masks)
    return _decoders.decoder(c, stack, cap=Scale.Spec(factor=c["logit_scale"]))


WEIGHTS = (
    *_decoders.weights(("input_layernorm", "parallel.pre"), attention="parallel.branch.attention"),
    *_decoders.gated_weights("parallel.branch.feed_forward"),
)
