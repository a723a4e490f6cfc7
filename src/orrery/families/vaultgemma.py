"""VaultGemma (Google 2025): Gemma 2 trained under differential privacy, without norms behind its branches.

Peculiar to it: RMSNorm in front of each branch only. As in Gemma 2: windows in every second layer, capped scores and
logits, the louder embeddings, gains stored minus one, GEGLU, a tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _gemma, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, positive, size, text
from orrery.models.decoder import Decoder

ARCHITECTURE = "VaultGemmaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(256000),
    "hidden_size": size(2304),
    "intermediate_size": size(9216),
    "num_hidden_layers": size(26),
    "num_attention_heads": size(8),
    "num_key_value_heads": size(4),
    "head_dim": size(256),
    "hidden_activation": text("gelu_pytorch_tanh"),
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
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 48,
    "sliding_window": 5,
    "query_pre_attn_scalar": 6,
}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("vaultgemma", config, DEFAULTS)
    alternating = [_windows.FULL if i % 2 else _windows.SLIDING for i in range(c["num_hidden_layers"])]
    names, masks = _windows.by_layer(c, alternating, c["sliding_window"])
    blocks = []
    for name in names:
        attention, feed_forward = _gemma.branches(c, mask=name, cap=c["attn_logit_softcapping"])
        blocks.append(_decoders.pre_norm(_gemma.norm(c), attention, feed_forward))
    return _gemma.decoder(c, blocks, masks=masks)


WEIGHTS = (*_decoders.weights(*_gemma.NORMS[::2]), *_decoders.gated_weights())
