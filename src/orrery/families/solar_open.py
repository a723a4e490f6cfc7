"""Solar Open (Upstage 2026): GLM-4.5 without dense layers and norms of heads, and with whole heads turned.

Peculiar to it: every layer is a mixture as in DeepSeek-V3; heads may be wider than the width shared out among them;
the output of the attention has no bias where queries, keys and values have one.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _deepseek, _mixture, _rotary
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases

ARCHITECTURE = "SolarOpenForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(196608),
    "hidden_size": size(4096),
    "moe_intermediate_size": size(1280),
    "num_hidden_layers": size(48),
    "num_attention_heads": size(64),
    "num_key_value_heads": size(8),
    "head_dim": size(128),
    "n_routed_experts": size(128),
    "n_shared_experts": size(1),
    "num_experts_per_tok": size(8),
    "n_group": size(1),
    "topk_group": size(1),
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "partial_rotary_factor": positive(1.0),
    **_rotary.DEFAULTS,
    "rope_theta": positive(1_000_000.0),
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "moe_intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 48,
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")
_ALIASES = {"num_local_experts": "n_routed_experts"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("solar_open", config, DEFAULTS, ignored=_IGNORED, aliases=_ALIASES)
    biased, layers = c["attention_bias"], c["num_hidden_layers"]
    attention = _decoders.attention(c, biases=Biases(q=biased, k=biased, v=biased))
    mixture = _deepseek.experts(c, _deepseek.sigmoid_router(c))
    positions = {"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"])}
    return _mixture.decoder(c, [attention] * layers, [mixture] * layers, positions=positions)


WEIGHTS = (*_decoders.weights(*_decoders.PRE_NORMS), *_deepseek.EXPERTS)
