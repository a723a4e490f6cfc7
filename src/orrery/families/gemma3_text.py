"""Gemma 3, the text model (Gemma Team 2025): five windowed layers to one that sees everything.

Peculiar to it: RMSNorm on each head of q and of k in the place of Gemma 2's capped scores; windows in five of six
layers; two sets of rotary positions, a slow one (base 1,000,000, perhaps rescaled) where a layer sees everything and
the usual one where it has a window. As in Gemma 2: norms in front of and behind each branch, the louder embeddings,
gains stored minus one, GEGLU, a tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _gemma, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, positive, size, text
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm

ARCHITECTURE = "Gemma3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(262208),
    "hidden_size": size(2304),
    "intermediate_size": size(9216),
    "num_hidden_layers": size(26),
    "num_attention_heads": size(8),
    "num_key_value_heads": size(4, null=True),
    "head_dim": size(256, null=True),
    "hidden_activation": text("gelu_pytorch_tanh", null=True),
    "max_position_embeddings": 131072,
    "sliding_window": count(4096, null=True),
    "sliding_window_pattern": size(6),
    "layer_types": items(),
    "query_pre_attn_scalar": positive(256),
    "final_logit_softcapping": positive(None),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
    "rope_theta": positive(1_000_000.0),
    "rope_local_base_freq": positive(10_000.0),
}
TINY = {
    **_decoders.TINY,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "head_dim": 8,
    "sliding_window": 5,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 6,
}
_FIXED = {
    "use_bidirectional_attention": False,
    "attn_logit_softcapping": None,  # the reference reads it and does not apply it
}
_IGNORED = ("_sliding_window_pattern", "cache_implementation")  # what is left of a pattern that layer_types spells out


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gemma3_text", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    pattern, layers = c["sliding_window_pattern"], range(1, c["num_hidden_layers"] + 1)
    usual = [_windows.SLIDING if i % pattern else _windows.FULL for i in layers]
    names, masks = _windows.by_layer(c, usual, c["sliding_window"])
    head_norm = HeadNorm.Spec(norm=_gemma.norm(c), head_width=_decoders.head_width(c))
    blocks = [_gemma.sandwich(c, mask=name, position=name, qk_norm=head_norm) for name in names]
    positions = _windows.positions(c, {_windows.FULL: c["rope_theta"], _windows.SLIDING: c["rope_local_base_freq"]})
    return _gemma.decoder(c, blocks, positions=positions, masks=masks)


WEIGHTS = (*_decoders.weights(*_gemma.NORMS, *_decoders.HEAD_NORMS), *_decoders.gated_weights())
