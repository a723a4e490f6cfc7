"""ERNIE 4.5 MoE, the language models (Baidu 2025): ERNIE 4.5 with experts in most layers.

Peculiar to it: experts are chosen by their probability plus a correction that no gradient moves, and weighed by the
probability alone, which sums to one unless it is tiny (``moe_norm_min``); two shared experts in one matrix; layers
before ``moe_layer_start_index``, behind ``moe_layer_end_index`` and beside ``moe_layer_interval`` are dense; neighbours
turn together, as in ERNIE 4.5, and ``use_bias`` reaches the head.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.checkpoints.layouts import Reshaped
from orrery.checkpoints.rules import Rule, rename
from orrery.families import _decoders, _deepseek, _mixture, _parts
from orrery.families._config import Config
from orrery.families._keys import Key, count, number, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import AtLeast, CorrectedSoftmaxRouter, TopK
from orrery.nn.norms import RMSNorm

ARCHITECTURE = "Ernie4_5_MoeForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(103424),
    "hidden_size": size(2560),
    "intermediate_size": size(12288),
    "moe_intermediate_size": size(1536),
    "num_hidden_layers": size(28),
    "num_attention_heads": size(20),
    "num_key_value_heads": size(4, null=True),
    "moe_num_experts": size(64),
    "moe_num_shared_experts": count(2),
    "moe_k": size(6),
    "moe_layer_start_index": count(1),
    "moe_layer_end_index": Key(-1, ("number",), whole=True, negative=True),
    "moe_layer_interval": size(1),
    "moe_norm_min": number(1e-12),
    "use_bias": False,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "rope_theta": positive(500_000.0),
}
TINY = {**_decoders.NARROW, "moe_intermediate_size": 8, "moe_num_experts": 6, "moe_k": 2}
_IGNORED = ("output_router_logits", "router_aux_loss_coef")
_ALIASES = {"num_experts": "moe_num_experts", "num_local_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("ernie4_5_moe", config, DEFAULTS, ignored=_IGNORED, aliases=_ALIASES)
    norm, bias = RMSNorm.Spec(eps=c["rms_norm_eps"]), c["use_bias"]
    attention = _decoders.attention(c, biases=_parts.biases(bias))
    dense, mixture = _decoders.feed_forward(c, bias=bias), _mixture_of(c)
    blocks = [_decoders.pre_norm(norm, attention, mixture if mixes else dense) for mixes in _mixes(c)]
    positions = {"rotary": replace(_decoders.rotary(c), interleaved=True)}
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=positions), bias=bias)


def _mixture_of(c: Config) -> MoE.Spec:
    shared = _decoders.feed_forward(
        c, hidden=c["moe_intermediate_size"] * c["moe_num_shared_experts"], bias=c["use_bias"]
    )
    return MoE.Spec(
        expert=_decoders.feed_forward(c, hidden=c["moe_intermediate_size"]),
        router=CorrectedSoftmaxRouter.Spec(
            experts=c["moe_num_experts"], choice=TopK(chosen=c["moe_k"]), weighing=AtLeast(least=c["moe_norm_min"])
        ),
        shared=(shared,) if shared.hidden else (),
    )


def _mixes(c: Config) -> list[bool]:
    """Return at which layers a mixture stands; an end of -1 is the last layer."""
    layers, start, end = c["num_hidden_layers"], c["moe_layer_start_index"], c["moe_layer_end_index"]
    last = layers - 1 if end == -1 else end
    return [start <= i <= last and (i + 1) % c["moe_layer_interval"] == 0 for i in range(layers)]


WEIGHTS = (
    *_decoders.weights(*_decoders.PRE_NORMS),
    *_decoders.gated_weights(),
    *_deepseek.SHARED,
    Rule(
        f"{_mixture.THEIRS}.moe_statics.e_score_correction_bias",
        (f"{_mixture.OURS}.router.correction",),
        Reshaped(axes=1),
    ),
    rename("lm_head.bias", "head.vocabulary.bias"),
)
