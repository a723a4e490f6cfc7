"""gpt-oss (OpenAI 2025): a mixture of clamped experts under alternating windows, with attention sinks.

Peculiar to it: every head has a learned score that goes to nothing, so that its pattern may sum to less than one;
every second layer looks through a window; experts clamp both sides of their gate and have biases, as the router and
the attention have; YaRN without rounding of its ramp. In the files all experts of a layer are one tensor, transposed,
gate and up row by row in turns. Published ones have four bits (MXFP4) and are unpacked: `reading.rounded`.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import Stacked
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _mixture, _parts, _windows
from orrery.families._config import Config
from orrery.families._keys import count, items, plain, positive, size, table
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Sinks
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import Normalised, SoftmaxRouter, TopK

ARCHITECTURE = "GptOssForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(201088),
    "hidden_size": size(2880),
    "intermediate_size": size(2880),
    "num_hidden_layers": size(36),
    "num_attention_heads": size(64),
    "num_key_value_heads": size(8, null=True),
    "head_dim": size(64, null=True),
    "num_local_experts": 128,
    "num_experts_per_tok": size(4),
    "swiglu_alpha": 1.702,
    "swiglu_limit": 7.0,
    "max_position_embeddings": 131072,
    "sliding_window": count(128, null=True),
    "layer_types": items(),
    "rms_norm_eps": 1e-5,
    "attention_bias": True,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "rope_theta": positive(150_000.0),
    "rope_scaling": table(),
    "rope_parameters": table({
        "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 4096,
    }, null=True),
}  # fmt: skip
TINY = {
    **_decoders.NARROW,
    "intermediate_size": 8,
    "head_dim": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "swiglu_limit": 0.5,
    "sliding_window": 7,
}
_FIXED = {"hidden_act": "silu"}
_IGNORED = (
    "output_router_logits", "router_aux_loss_coef", "initial_context_length", "experts_per_token",
)  # fmt: skip


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("gpt_oss", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    layers, count, biases = c["num_hidden_layers"], c["num_local_experts"], _parts.biases(c["attention_bias"])
    alternating = [_windows.FULL if i % 2 else _windows.SLIDING for i in range(layers)]
    names, masks = _windows.by_layer(c, alternating, c["sliding_window"])
    mixture = MoE.Spec(
        expert=ClampedGatedMLP.Spec(
            hidden=c["intermediate_size"], limit=float(c["swiglu_limit"]), slope=float(c["swiglu_alpha"])
        ),
        router=SoftmaxRouter.Spec(
            experts=count, choice=TopK(chosen=c["num_experts_per_tok"]), weighing=Normalised(), bias=True
        ),
    )
    attentions = [_decoders.attention(c, biases=biases, sinks=Sinks.Spec(), mask=name) for name in names]
    return _mixture.decoder(c, attentions, [mixture] * layers, masks)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, in which a layer's experts are one tensor."""
    theirs, ours = _mixture.THEIRS, _mixture.OURS
    experts = range({**plain(DEFAULTS), **config}["num_local_experts"])

    def stacked(name: str, *parts: str, turned: bool = False) -> Rule:
        each = tuple(f"{ours}.experts.{x}.{part}" for x in experts for part in parts)
        return Rule(f"{theirs}.experts.{name}", each, Stacked(len(parts), len(parts) > 1, turned))

    return (
        *_decoders.weights(*_decoders.PRE_NORMS),
        rename(f"{_decoders.LAYER}.self_attn.sinks", f"{_decoders.BLOCK}.attention.branch.sinks.weight"),
        *renames(theirs, ours, [("router", "router.linear")]),
        stacked("gate_up_proj", "gate.weight", "up.weight", turned=True),
        stacked("gate_up_proj_bias", "gate.bias", "up.bias"),
        stacked("down_proj", "down.weight", turned=True),
        stacked("down_proj_bias", "down.bias"),
    )
