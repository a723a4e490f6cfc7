"""MiniMax-M2 (MiniMax 2025): many experts by sigmoid, norms over all heads together, part of a head turned.

Peculiar to it: every layer is a mixture whose scores are sigmoids, chosen with a correction that no gradient moves and
weighed without it, to sum to one; RMSNorm on queries and on keys, all heads together, before the rotation; rotary
positions on the first ``rotary_dim`` channels of a head, or on the share that the rotary settings name. Its modules
that predict further tokens are no part of the logits.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.families import _decoders, _mixture, _rotary
from orrery.families._config import Config
from orrery.families._keys import positive, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import Normalised, SigmoidRouter, TopK
from orrery.nn.norms import RMSNorm

ARCHITECTURE = "MiniMaxM2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(200064),
    "hidden_size": size(3072),
    "intermediate_size": size(1536),
    "num_hidden_layers": size(62),
    "num_attention_heads": size(48),
    "num_key_value_heads": size(8),
    "head_dim": size(128),
    "num_local_experts": size(256),
    "num_experts_per_tok": size(8),
    "max_position_embeddings": 196608,
    "rms_norm_eps": 1e-6,
    "rope_theta": positive(5_000_000.0),
    "rotary_dim": size(None),
    "partial_rotary_factor": positive(None),
}
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 8,
    "head_dim": 8,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "rotary_dim": 4,
}
_FIXED = {"router_jitter_noise": 0.0}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")
_ALIASES = {"num_experts": "num_local_experts"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes.

    Raises:
        ModelFileError: an odd number of channels is to turn, or more than a head has.
    """
    c = Config("minimax_m2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)
    layers, heads = c["num_hidden_layers"], RMSNorm.Spec(eps=c["rms_norm_eps"])
    mixture = MoE.Spec(
        expert=_decoders.feed_forward(c),
        router=SigmoidRouter.Spec(
            experts=c["num_local_experts"], choice=TopK(chosen=c["num_experts_per_tok"]), weighing=Normalised()
        ),
    )
    turning = _rotary.check_turning("minimax_m2", c["rotary_dim"] or c["head_dim"], c["head_dim"])
    share = c["partial_rotary_factor"] or turning / c["head_dim"]
    positions = {"rotary": _decoders.rotary(c, share=share)}
    attention = _decoders.attention(c, qk_norm=heads)
    return _mixture.decoder(c, [attention] * layers, [mixture] * layers, positions=positions)


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS, *_decoders.QK_NORMS),
    *_mixture.MIXTRAL,
    rename(f"{_mixture.SPARSE}.e_score_correction_bias", f"{_mixture.OURS}.router.correction"),
)
