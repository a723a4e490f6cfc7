"""Mellum 2 (JetBrains 2026): Qwen 3 MoE with windows, and rotary settings for each kind of layers.

Peculiar to it: ``layer_types`` says which layers look through a window and ``mlp_layer_types`` which are dense; layers
that see everything and those with a window turn at rates of their own. As in Qwen 3 MoE: RMSNorm on each head of q and
of k, weights of the chosen experts that sum to one. The module that predicts a further token is no part of the logits.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _mixture, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, size, table
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm, RMSNorm

ARCHITECTURE = "MellumForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(98304),
    "hidden_size": size(2304),
    "intermediate_size": size(7168),
    "moe_intermediate_size": size(896),
    "num_hidden_layers": size(28),
    "num_attention_heads": size(32),
    "num_key_value_heads": size(4),
    "head_dim": size(128),
    "num_experts": size(64),
    "num_experts_per_tok": size(8),
    "norm_topk_prob": True,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "sliding_window": count(1024, null=True),
    "layer_types": items(),
    "mlp_layer_types": items(),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "rope_parameters": table(),
}
TINY = {
    **_decoders.NARROW,
    "moe_intermediate_size": 8,
    "head_dim": 6,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "sliding_window": 5,
    "layer_types": ["sliding_attention", "full_attention"],
    "mlp_layer_types": ["dense", "sparse"],
}
_IGNORED = (
    "output_router_logits", "router_aux_loss_coef", "num_mtp_layers", "num_nextn_predict_layers", "mtp_layer_types",
    "mtp_mlp_layer_types",
)  # fmt: skip
_ALIASES = {"num_local_experts": "num_experts"}
_BASES = {_windows.FULL: 500_000.0, _windows.SLIDING: 10_000.0}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("mellum", config, DEFAULTS, ignored=_IGNORED, aliases=_ALIASES)
    names, masks = _windows.by_layer(c, [_windows.FULL] * c["num_hidden_layers"], c["sliding_window"])
    head_norm = HeadNorm.Spec(norm=RMSNorm.Spec(eps=c["rms_norm_eps"]), head_width=_decoders.head_width(c))
    fields = {"biases": _parts.biases(c["attention_bias"]), "qk_norm": head_norm}
    attentions = [_decoders.attention(c, mask=name, position=name, **fields) for name in names]
    mixture = _mixture.experts(c, c["num_experts"], "moe_intermediate_size", normalised=c["norm_topk_prob"])
    feed_forwards = _mixture.listed(c, "mlp_layer_types", mixture)
    return _mixture.decoder(c, attentions, feed_forwards, masks, positions=_windows.positions(c, _BASES))


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS, *_decoders.HEAD_NORMS),
    *_decoders.gated_weights(),
    *_mixture.EXPERTS,
)
