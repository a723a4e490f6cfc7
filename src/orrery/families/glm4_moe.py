"""GLM-4.5 and 4.6 (GLM-4.5 Team 2025): grouped attention before DeepSeek-V3's experts.

Peculiar to it: rotary positions on the first half of each head; biases on queries, keys and values only; in the larger
model RMSNorm on each head of q and of k; the first layers are dense, the others mixtures whose experts are chosen and
weighed as in DeepSeek-V3. The module that predicts a second token is no part of the logits.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _deepseek, _mixture
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.residual import Identity

ARCHITECTURE = "Glm4MoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151552),
    "intermediate_size": size(10944),
    "moe_intermediate_size": size(1408),
    "num_hidden_layers": size(46),
    "num_attention_heads": size(96),
    "num_key_value_heads": size(8),
    "first_k_dense_replace": 1,
    "n_routed_experts": size(128),
    "n_shared_experts": size(1),
    "num_experts_per_tok": size(8),
    "n_group": size(1),
    "topk_group": size(1),
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
    "use_qk_norm": False,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "partial_rotary_factor": positive(0.5),
}
TINY = {
    **_decoders.NARROW,
    "moe_intermediate_size": 8,
    "head_dim": 8,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "routed_scaling_factor": 1.5,
    "use_qk_norm": True,
}
_IGNORED = ("output_router_logits", "router_aux_loss_coef", "num_mtp_layers", "num_nextn_predict_layers")
_ALIASES = {"num_local_experts": "n_routed_experts"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("glm4_moe", config, DEFAULTS, ignored=_IGNORED, aliases=_ALIASES)
    biased, norm = c["attention_bias"], RMSNorm.Spec(eps=c["rms_norm_eps"])
    head_norm = HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)) if c["use_qk_norm"] else Identity.Spec()
    attention = _decoders.attention(c, biases=Biases(q=biased, k=biased, v=biased), qk_norm=head_norm)
    networks = _deepseek.feed_forwards(c, _deepseek.sigmoid_router(c))
    positions = {"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"])}
    return _mixture.decoder(c, [attention] * len(networks), networks, positions=positions)


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS, *_decoders.HEAD_NORMS),
    *_decoders.gated_weights(),
    *_deepseek.EXPERTS,
)
