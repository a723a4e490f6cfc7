"""Qwen 3 MoE (Yang et al. 2025): Qwen 2 MoE with norms on each head of q and k, and without a shared expert.

Peculiar to it: an RMSNorm over the channels of every head of q and of k, before the rotation; no biases, unless
``attention_bias`` says so; heads may be wider than the width shared out among them; all layers may look through one
window; some may be dense.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _mixture, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, size
from orrery.models.decoder import Decoder
from orrery.nn.norms import HeadNorm, RMSNorm

ARCHITECTURE = "Qwen3MoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151936),
    "hidden_size": size(2048),
    "intermediate_size": size(6144),
    "moe_intermediate_size": size(768),
    "num_hidden_layers": size(24),
    "num_key_value_heads": size(4, null=True),
    "num_experts": 128,
    "num_local_experts": count(None),
    "num_experts_per_tok": size(8),
    "norm_topk_prob": False,
    "decoder_sparse_step": size(1),
    "mlp_only_layers": items(),
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": count(4096, null=True),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}
TINY = {
    **_decoders.NARROW,
    "moe_intermediate_size": 8,
    "head_dim": 6,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "norm_topk_prob": True,
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef", "max_window_layers")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("qwen3_moe", config, DEFAULTS, ignored=_IGNORED)
    count = c["num_experts"] if c["num_local_experts"] is None else c["num_local_experts"]  # old name, new name
    head_norm = HeadNorm.Spec(norm=RMSNorm.Spec(eps=c["rms_norm_eps"]), head_width=_decoders.head_width(c))
    attention = _decoders.attention(c, biases=_parts.biases(c["attention_bias"]), qk_norm=head_norm)
    mixture = _mixture.experts(c, count, "moe_intermediate_size", normalised=c["norm_topk_prob"])
    feed_forwards = _mixture.mixed(c, count, mixture)
    masks = {"causal": _windows.causal(c, c["sliding_window"] if c["use_sliding_window"] else None)}
    return _mixture.decoder(c, [attention] * len(feed_forwards), feed_forwards, masks)


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS, *_decoders.HEAD_NORMS),
    *_decoders.gated_weights(),
    *_mixture.EXPERTS,
)
