"""Qwen 1.5 and 2 MoE (Yang et al. 2024): many small experts beside one that each token turns up or down.

Peculiar to it: the shared expert is weighed by a sigmoid gate of its own; weights of the chosen experts are their
probabilities, normalised only where ``norm_topk_prob`` says so; some layers may be dense (``mlp_only_layers``,
``decoder_sparse_step``); q, k and v have biases, the output has none; windows, where they are
switched on, stand in every second of the first ``max_window_layers`` layers.

Files of 2025 list windows in ``layer_types`` although they are switched off, or have no length: such a window bounds
nothing. Today's transformers makes one of no token of it, in which its kernels differ.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import renames
from orrery.families import _decoders, _mixture, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.residual import Gated

ARCHITECTURE = "Qwen2MoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151936),
    "hidden_size": size(2048),
    "intermediate_size": size(5632),
    "moe_intermediate_size": size(1408),
    "shared_expert_intermediate_size": size(5632),
    "num_hidden_layers": size(24),
    "num_attention_heads": size(16),
    "num_key_value_heads": size(16, null=True),
    "num_experts": 60,
    "num_experts_per_tok": size(4),
    "norm_topk_prob": False,
    "decoder_sparse_step": size(1),
    "mlp_only_layers": items(),
    "qkv_bias": True,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": count(4096, null=True),
    "max_window_layers": 28,
    "layer_types": items(),
    "rms_norm_eps": 1e-6,
}
TINY = {
    **_decoders.NARROW,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 12,
    "num_hidden_layers": 3,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [1],
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("qwen2_moe", config, DEFAULTS, ignored=_IGNORED)
    biased, count = c["qkv_bias"], c["num_experts"]
    shared = Gated.Spec(branch=_decoders.feed_forward(c, hidden=c["shared_expert_intermediate_size"]))
    mixture = _mixture.experts(c, count, "moe_intermediate_size", normalised=c["norm_topk_prob"], shared=(shared,))
    window: int | None = c["sliding_window"] if c["use_sliding_window"] else None
    slides = range(0, c["max_window_layers"] if c["use_sliding_window"] else 0, 2)
    usual = [_windows.SLIDING if i in slides else _windows.FULL for i in range(c["num_hidden_layers"])]
    kinds = _windows.kinds_of(c, usual)
    names, masks = _windows.by_kind(c, kinds if window is not None else [_windows.FULL] * len(kinds), window)
    attentions = [_decoders.attention(c, mask=name, biases=Biases(q=biased, k=biased, v=biased)) for name in names]
    return _mixture.decoder(c, attentions, _mixture.mixed(c, count, mixture), masks)


_SHARED = f"{_mixture.OURS}.shared.0"
WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS),
    *_decoders.gated_weights(),
    *_mixture.EXPERTS,
    *renames(_mixture.THEIRS, _SHARED, [("shared_expert_gate", "gate")]),
    *renames(f"{_mixture.THEIRS}.shared_expert", f"{_SHARED}.branch", _decoders.GATED),
)
