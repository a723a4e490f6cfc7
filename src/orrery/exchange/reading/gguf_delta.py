"""The gated delta rule in GGUF files: Qwen3-Next, whose attention in between passes through a gate.

What belongs to one key stands together where a file has the writing and forgetting of a head, and the gate of a head of
attention behind its query; the delta rule's queries, keys and values stand one below the other. Gains are whole, and
rates themselves are stored instead of their logarithms.
Source: https://github.com/ggml-org/llama.cpp, ``conversion/qwen.py`` and ``src/models/qwen3next.cpp``; measured against
llama.cpp itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import Depthwise, GroupInterleaved, NegativeExponential, Shifted
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import UsageError
from orrery.exchange.reading import gguf_dense as dense
from orrery.exchange.reading import gguf_mixtures as mixtures
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import BLOCK, OUTER, THEIRS, Config, Facts
from orrery.exchange.reading.gguf_recurrent import ENDS, MIXER
from orrery.models.decoder import Decoder
from orrery.nn.linear.gated_delta import EPSILON

_ATTENTION = f"{BLOCK}.attention.branch"
_EVERY = 4
"""At every so many layers llama.cpp attends where a file does not say it."""


def _kinds(spec: Decoder.Spec) -> tuple[Any, Any]:
    """Return the attention behind its gate, and the delta rule.

    Raises:
        UsageError: llama.cpp would not compute this model.
    """
    gated, mixer = parts.branch_of(spec, "attention"), parts.branch_of(spec, "mixer")
    if gated is None or mixer is None:
        raise UsageError("llama.cpp wants layers of both kinds, and one is missing here", "export to hf")
    if mixer.key_width != mixer.value_width:
        widths = f"{mixer.key_width} and {mixer.value_width}"
        raise UsageError(f"llama.cpp wants keys as wide as values, and they have {widths} channels", "export to hf")
    if mixer.eps != EPSILON:
        said = f"takes the {mixer.eps:g} of the norms where the makers take {EPSILON:g}, at the length of keys"
        raise UsageError(f"llama.cpp {said}", "export to hf")
    return gated.attention, mixer


def _facts(spec: Decoder.Spec) -> Facts:
    attention, mixer = _kinds(spec)
    mixture: Any = mixtures.mixture_of(spec)
    rotary: Any = spec.stack.positions["rotary"]
    return {
        **parts.sizes(spec, "layer_norm_rms_epsilon"),
        **mixtures.expert_facts(spec),
        "expert_feed_forward_length": mixture.expert.hidden,
        "expert_shared_feed_forward_length": mixture.shared[0].branch.hidden,
        "attention.head_count": attention.heads,
        "attention.head_count_kv": attention.kv_heads,
        "attention.key_length": attention.head_width,
        "attention.value_length": attention.head_width,
        "rope.dimension_count": rotary.width,
        "rope.freq_base": rotary.base,
        **parts.scaling_facts(rotary.scaling),
        "ssm.conv_kernel": mixer.places,
        "ssm.state_size": mixer.key_width,
        "ssm.group_count": mixer.heads // mixer.sharing,
        "ssm.time_step_rank": mixer.heads,
        "ssm.inner_size": mixer.heads * mixer.value_width,
        "full_attention_interval": _first_attending(spec) + 1,
    }


def _first_attending(spec: Decoder.Spec) -> int:
    return next(i for i, block in enumerate(spec.stack.blocks) if "attention" in block.residuals)


def _layer_types(facts: Mapping[str, Any], layers: int) -> list[str]:
    """Return what each layer is: a file may list them, or say at every how many there is attention."""
    every = facts.get("full_attention_interval", _EVERY)
    recurrent_layers = facts.get("attention.recurrent_layers")
    if not isinstance(recurrent_layers, list):
        recurrent_layers = [(layer + 1) % every != 0 for layer in range(layers)]
    return ["linear_attention" if mixes else "full_attention" for mixes in recurrent_layers[:layers]]


def _config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    heads, small = facts["ssm.time_step_rank"], facts.get("expert_feed_forward_length")
    wide = facts["feed_forward_length"]
    layers = len(parts.for_each_layer(facts, "block_count")) - facts.get("nextn_predict_layers", 0)
    return {
        **dense.whole_config(facts, tensors),
        **mixtures.expert_config(facts),
        "num_hidden_layers": layers,
        "layer_types": _layer_types(facts, layers),
        "moe_intermediate_size": small or wide // facts["expert_used_count"],
        "shared_expert_intermediate_size": facts.get("expert_shared_feed_forward_length", 0) or wide,
        "norm_topk_prob": True,
        "partial_rotary_factor": parts.rotated_share(facts),
        "attention_bias": any(name.endswith("attn_q.bias") for name in tensors),
        "linear_num_key_heads": facts["ssm.group_count"],
        "linear_num_value_heads": heads,
        "linear_key_head_dim": facts["ssm.state_size"],
        "linear_value_head_dim": facts["ssm.inner_size"] // heads,
        "linear_conv_kernel_dim": facts["ssm.conv_kernel"],
    }


def _rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    attention, mixer = parts.branch_of(spec, "attention"), parts.branch_of(spec, "mixer")
    by_query = GroupInterleaved(attention.attention.heads if attention else 1)
    others = (("attn_k", "k"), ("attn_v", "v"), ("attn_output", "out"))
    return (
        *(rule for rule in OUTER if not rule.theirs.startswith("output_norm")),
        *_gains(),
        *(
            Rule(f"{THEIRS}.attn_q.{end}", (f"{_ATTENTION}.q.{end}", f"{_ATTENTION}.gate.linear.{end}"), by_query)
            for end in ENDS
        ),
        *renames(THEIRS, _ATTENTION, others),
        *(_delta_rule(mixer) if mixer else ()),
        *mixtures.expert_rules(spec),
    )


def _gains() -> tuple[Rule, ...]:
    """Return the rules of the norms that the file holds whole: all but that inside the delta rule."""
    roles = (("attn_norm", "attention.pre"), ("attn_norm", "mixer.pre"), ("post_attention_norm", "feed_forward.pre"))
    own = [(f"{THEIRS}.{theirs}", f"{BLOCK}.{ours}") for theirs, ours in (*roles, *dense.HEAD_NORMS)]
    pairs = (*own, ("output_norm", "stack.final"))
    return tuple(Rule(f"{theirs}.weight", (f"{ours}.weight",), Shifted(1.0)) for theirs, ours in pairs)


def _delta_rule(mixer: Any) -> tuple[Rule, ...]:
    by_key = GroupInterleaved(mixer.heads // mixer.sharing)
    return (
        fused(f"{THEIRS}.attn_qkv.weight", tuple(f"{MIXER}.{part}.weight" for part in "qkv")),
        rename(f"{THEIRS}.attn_gate.weight", f"{MIXER}.gate.weight"),
        Rule(f"{THEIRS}.ssm_ba.weight", (f"{MIXER}.write.weight", f"{MIXER}.forget.weight"), by_key),
        rename(f"{THEIRS}.ssm_dt.bias", f"{MIXER}.forget.bias"),
        Rule(f"{THEIRS}.ssm_a", (f"{MIXER}.forget.pace",), NegativeExponential()),
        Rule(f"{THEIRS}.ssm_conv1d.weight", (f"{MIXER}.short.weight",), Depthwise()),
        rename(f"{THEIRS}.ssm_norm.weight", f"{MIXER}.norm.norm.weight"),
        rename(f"{THEIRS}.ssm_out.weight", f"{MIXER}.out.weight"),
    )


def _all_in_one(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rule of files from before 2026, which keep the delta rule's gate with its queries, key by key."""
    mixer = parts.branch_of(spec, "mixer")
    if mixer is None:
        return ()
    by_key = GroupInterleaved(mixer.heads // mixer.sharing)
    return (
        Rule(f"{THEIRS}.ssm_in.weight", tuple(f"{MIXER}.{part}.weight" for part in ("q", "k", "v", "gate")), by_key),
    )


ARCHITECTURES = {
    "qwen3_next": parts.GgufArchitecture(
        "qwen3next", _facts, _config, _rules, partial=True, listed=frozenset({"attention.recurrent_layers"}),
        older=_all_in_one,
    ),
}  # fmt: skip
"""By ``model_type``."""
