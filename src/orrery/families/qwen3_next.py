"""Qwen3-Next (Qwen Team 2025): Gated DeltaNet in three layers of four, attention behind a gate in the fourth.

Peculiar to it: two heads of the delta rule share a query and a key; attention has a sigmoid gate on every channel of
its heads, whose rows stand beside those of q in one matrix, norms of each head of q and k, and rotary positions on a
quarter of each; norms store the gain less one, but for that inside the delta rule; a mixture of many small experts with
one that each token turns up or down, as in Qwen 2 MoE. Modules that predict further tokens are no part of the logits.
"""

import math
from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import GroupInterleaved
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _gemma, _mixture, _parts
from orrery.families._config import Config
from orrery.families._keys import items, plain, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.output_gate import OutputGate
from orrery.nn.linear.gated_delta import Forgetting, GatedDelta
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.norms import HeadNorm
from orrery.nn.residual import Gated
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "Qwen3NextForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(151936),
    "hidden_size": size(2048),
    "intermediate_size": size(5632),
    "moe_intermediate_size": size(512),
    "shared_expert_intermediate_size": size(512),
    "num_hidden_layers": size(48),
    "layer_types": items(),
    "full_attention_interval": size(4),
    "num_attention_heads": size(16),
    "num_key_value_heads": size(2, null=True),
    "head_dim": size(256, null=True),
    "linear_num_key_heads": size(16),
    "linear_num_value_heads": size(32),
    "linear_key_head_dim": size(128),
    "linear_value_head_dim": size(128),
    "linear_conv_kernel_dim": size(4),
    "num_experts": 512,
    "num_experts_per_tok": size(10),
    "norm_topk_prob": True,
    "decoder_sparse_step": size(1),
    "mlp_only_layers": items(),
    "max_position_embeddings": 32768,
    "partial_rotary_factor": positive(0.25),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}
TINY = {
    **_decoders.NARROW,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 12,
    "layer_types": ["linear_attention", "full_attention"],
    "head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 6,
    "linear_conv_kernel_dim": 3,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    # The norm behind a state magnifies what float32 inside the installed reference rounds where a head says little.
    "rms_norm_eps": 1e-5,
}
_FIXED = {"hidden_act": "silu"}
_IGNORED = ("output_router_logits", "router_aux_loss_coef", "use_sliding_window")
_KINDS = {"linear_attention": False, "full_attention": True}
_STEP = math.log1p(math.e)
"""The step that a bias of one makes, as the reference draws all of them."""
LEGACY_NAMES: Mapping[str, str | None] = {r"^mtp\.": None}
"""Drops the module that predicts further tokens, through which no logits pass; the reference does so too."""


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("qwen3_next", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED)
    norm = _gemma.norm(c)
    shared = Gated.Spec(branch=_decoders.feed_forward(c, hidden=c["shared_expert_intermediate_size"]))
    many, normalised = c["num_experts"], c["norm_topk_prob"]
    mixture = _mixture.experts(c, many, "moe_intermediate_size", normalised=normalised, shared=(shared,))
    blocks = [
        _parts.sequential({**(_attention(c) if attends else _delta_rule(c)), "feed_forward": feed_forward}, pre=norm)
        for attends, feed_forward in zip(_attends(c), _mixture.mixed(c, many, mixture), strict=True)
    ]
    positions = {"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"])}
    masks = {"causal": Causal(), "past": RecurrentPast()}
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, positions=positions, masks=masks))


def _attends(c: Config) -> list[bool]:
    """Return which layers attend.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    layers, every = c["num_hidden_layers"], c["full_attention_interval"]
    if c["layer_types"] is None:
        return [(i + 1) % every == 0 for i in range(layers)]
    if unknown := sorted({str(kind) for kind in c["layer_types"]} - set(_KINDS)):
        raise ModelFileError(
            f"{c.family}: layer_types has the unknown {', '.join(unknown)}", f"known: {', '.join(_KINDS)}"
        )
    if len(c["layer_types"]) != layers:
        message = f"{c.family}: layer_types lists {len(c['layer_types'])} layers, num_hidden_layers is {layers}"
        raise ModelFileError(message, "list every layer once")
    return [_KINDS[kind] for kind in c["layer_types"]]


def _attention(c: Config) -> dict[str, ModuleSpec]:
    width, biased = _decoders.head_width(c), c["attention_bias"]
    head_norm = HeadNorm.Spec(norm=_gemma.norm(c), head_width=width)
    attention = _decoders.attention(c, biases=_parts.biases(biased), qk_norm=head_norm)
    return {"attention": OutputGate.Spec(attention=attention, bias=biased)}


def _delta_rule(c: Config) -> dict[str, ModuleSpec]:
    heads, sharing = c["linear_num_value_heads"], c.divide("linear_num_value_heads", "linear_num_key_heads")
    mixer = GatedDelta.Spec(
        heads=heads,
        key_width=c["linear_key_head_dim"],
        value_width=c["linear_value_head_dim"],
        forget=Forgetting.Spec(heads=heads, least=0.01, steps=TimeSteps(low=_STEP, high=_STEP)),
        sharing=sharing,
        places=c["linear_conv_kernel_dim"],
        eps=c["rms_norm_eps"],
    )
    return {"mixer": mixer}


_LAYER, _BLOCK = _decoders.LAYER, _decoders.BLOCK
_DELTA_RULE, _SHARED = f"{_LAYER}.linear_attn", f"{_mixture.OURS}.shared.0"


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, in which what belongs to one head of queries or of keys lies together."""
    c = {**plain(DEFAULTS), **config}
    attention, mixer = f"{_BLOCK}.attention.branch", f"{_BLOCK}.mixer.branch"
    by_query, by_key = GroupInterleaved(c["num_attention_heads"]), GroupInterleaved(c["linear_num_key_heads"])
    named = (("A_log", "forget.pace"), ("dt_bias", "forget.bias"), ("conv1d.weight", "short.weight"))
    norms = (("attention", "input"), ("mixer", "input"), ("feed_forward", "post_attention"))
    return (
        *_decoders.frame(*_decoders.HEAD_NORMS),
        *(rename(f"{_LAYER}.{name}_layernorm.weight", f"{_BLOCK}.{role}.pre.weight") for role, name in norms),
        *(
            Rule(
                f"{_LAYER}.self_attn.q_proj.{end}", (f"{attention}.q.{end}", f"{attention}.gate.linear.{end}"), by_query
            )
            for end in ("weight", "bias")
        ),
        *renames(f"{_LAYER}.self_attn", attention, (("k_proj", "k"), ("v_proj", "v"), ("o_proj", "out"))),
        Rule(
            f"{_DELTA_RULE}.in_proj_qkvz.weight",
            tuple(f"{mixer}.{part}.weight" for part in ("q", "k", "v", "gate")),
            by_key,
        ),
        Rule(f"{_DELTA_RULE}.in_proj_ba.weight", (f"{mixer}.write.weight", f"{mixer}.forget.weight"), by_key),
        *(rename(f"{_DELTA_RULE}.{theirs}", f"{mixer}.{ours}") for theirs, ours in named),
        *renames(_DELTA_RULE, mixer, (("norm", "norm.norm"), ("out_proj", "out"))),
        *_decoders.gated_weights(),
        *_mixture.EXPERTS,
        *renames(_mixture.THEIRS, _SHARED, [("shared_expert_gate", "gate")]),
        *renames(f"{_mixture.THEIRS}.shared_expert", f"{_SHARED}.branch", _decoders.GATED),
    )
