"""Gemma 2 (Gemma Team 2024b): Gemma with norms on both sides, capped scores and windows in every other layer.

Peculiar to it: a norm in front of each branch and one behind it; ``cap * tanh(x / cap)`` on the scores and on the
logits; windows in layers 0, 2, 4, ...; scores divided by ``sqrt(query_pre_attn_scalar)``, which need not be the width
of a head. As in Gemma 1: the louder embeddings, gains stored minus one, GEGLU, a tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _gemma, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, positive, size, text
from orrery.models.decoder import Decoder

ARCHITECTURE = "Gemma2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(256000),
    "hidden_size": size(2304),
    "intermediate_size": size(9216),
    "num_hidden_layers": size(26),
    "num_attention_heads": size(8),
    "num_key_value_heads": size(4, null=True),
    "head_dim": size(256, null=True),
    "hidden_activation": text("gelu_pytorch_tanh", null=True),
    "max_position_embeddings": 8192,
    "sliding_window": count(4096, null=True),
    "layer_types": items(),
    "query_pre_attn_scalar": positive(256),
    "attn_logit_softcapping": positive(50.0, null=True),
    "final_logit_softcapping": positive(30.0, null=True),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {**_decoders.TINY, "num_attention_heads": 4, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 6}
_FIXED = {"use_bidirectional_attention": None}
_IGNORED = ("hidden_act", "sliding_window_size", "cache_implementation")  # older names of keys that are there too


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gemma2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    alternating = [_windows.FULL if i % 2 else _windows.SLIDING for i in range(c["num_hidden_layers"])]
    names, masks = _windows.by_layer(c, alternating, c["sliding_window"])
    blocks = [_gemma.sandwich(c, mask=name, cap=c["attn_logit_softcapping"]) for name in names]
    return _gemma.decoder(c, blocks, masks=masks)


WEIGHTS = (*_decoders.weights(*_gemma.NORMS), *_decoders.gated_weights())
