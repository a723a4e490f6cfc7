"""DeepSeek-V3 and R1 (DeepSeek-AI 2024): DeepSeek-V2 with experts that stay balanced without a loss.

Peculiar to it, beside what it shares with V2: an expert's score is a sigmoid; a correction without a gradient, which
its makers' training moved by a rule of its own, is added to choose experts but not to weigh them (section 2.1.2); a
group of experts is judged by its two best; the weights of the chosen sum to ``routed_scaling_factor``. The module that
predicts a second token (section 2.2) is no part of the model's forward, and its tensors are refused.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _deepseek
from orrery.families._config import Config
from orrery.families._keys import plain, size
from orrery.models.decoder import Decoder

ARCHITECTURE = "DeepseekV3ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_deepseek.DEFAULTS,
    "vocab_size": size(129280),
    "hidden_size": size(7168),
    "intermediate_size": size(18432),
    "moe_intermediate_size": size(2048),
    "num_hidden_layers": size(61),
    "num_attention_heads": size(128),
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "n_shared_experts": size(1, null=True),
    "num_experts_per_tok": size(8),
    "n_group": size(8),
    "topk_group": size(4),
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "max_position_embeddings": 4096,
    "rope_interleave": True,
}
TINY = {
    **_deepseek.TINY,
    "moe_intermediate_size": 8,
    "first_k_dense_replace": 1,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_group": 3,
    "topk_group": 2,
}
_FIXED = {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1}
_IGNORED = (
    "num_key_value_heads", "ep_size", "aux_loss_alpha", "seq_aux",
    "output_router_logits", "router_aux_loss_coef", "num_nextn_predict_layers", "num_mtp_layers",
)  # fmt: skip


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _deepseek.check(Config("deepseek_v3", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED))
    return _deepseek.decoder(c, _deepseek.sigmoid_router(c), interleaved=c["rope_interleave"], bias=False)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, which depend on the number of heads."""
    return _deepseek.weights({**plain(DEFAULTS), **config})
