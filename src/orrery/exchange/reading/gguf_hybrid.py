"""Attention beside mixers with a state in GGUF files: Granite 4, Falcon-H1, LFM2, Nemotron-H and Jamba.

Which layers attend is read from the number of their key-value heads, of which the others have none.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orrery.checkpoints.layouts import ROWS, RotaryInterleaved
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.exchange.reading import gguf_dense as dense
from orrery.exchange.reading import gguf_mixtures as mixtures
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading import gguf_recurrent as recurrent
from orrery.exchange.reading.gguf_parts import BLOCK, OUTER, ROTARY_MATRICES, THEIRS, Config, Facts
from orrery.exchange.reading.gguf_recurrent import ENDS, MIXER
from orrery.models.decoder import Decoder

_BESIDE = f"{BLOCK}.parallel.branch"
_LISTED = frozenset({"attention.head_count_kv", "feed_forward_length"})


def _by_layer(spec: Decoder.Spec) -> Facts:
    """Return how many key-value heads each layer has: none where it has a mixer with a state."""
    heads: Any = [getattr(block.residuals.get("attention"), "branch", None) for block in spec.stack.blocks]
    return {"attention.head_count_kv": [getattr(attention, "kv_heads", 0) for attention in heads]}


def _kv_heads(facts: Mapping[str, Any]) -> list[int]:
    return parts.for_each_layer(facts, "attention.head_count_kv")


def _beside(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of Mamba-2's mixer in models that have attention too."""
    inner, width, heads = facts["ssm.inner_size"], facts["embedding_length"], facts["ssm.time_step_rank"]
    return {
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_expand": inner // width,
        "mamba_n_groups": facts["ssm.group_count"],
        "mamba_d_state": facts["ssm.state_size"],
        "mamba_d_conv": facts["ssm.conv_kernel"],
        "mamba_conv_bias": any(name.endswith("ssm_conv1d.bias") for name in tensors),
        "mamba_proj_bias": any(name.endswith("ssm_in.bias") for name in tensors),
    }


def _attention(spec: Decoder.Spec, layout: Any = None, ours: str = f"{BLOCK}.attention.branch") -> tuple[Rule, ...]:
    plain: Any = lambda heads: ROWS  # noqa: E731 - a layout of each number of heads
    others = (("attn_v", "v"), ("attn_output", "out"))
    return (
        *parts.head_rules(spec, layout or plain, ours=ours),
        *(rename(f"{THEIRS}.{a}.{end}", f"{ours}.{b}.{end}") for a, b in others for end in ENDS),
    )


_NETWORK = (*(pair for pair in ROTARY_MATRICES if pair[0].startswith("ffn")), ("ffn_norm", "feed_forward.pre"))


def _granitehybrid_facts(spec: Decoder.Spec) -> Facts:
    attention, mixture = parts.branch_of(spec, "attention"), mixtures.mixture_of(spec)
    rotary = dense.granite_facts(spec) if attention else {}
    experts = mixtures.expert_facts(spec) if mixture else {}
    shared: Any = mixture.shared[0] if mixture else None
    return {
        **rotary,
        **recurrent.mamba2_facts(spec),
        **experts,
        **({"expert_shared_feed_forward_length": shared.hidden} if mixture else {}),
        **_by_layer(spec),
        "rope.scaling.finetuned": getattr(attention, "position", "none") != "none",
    }


def _granitehybrid_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    kv_heads, experts = _kv_heads(facts), facts.get("expert_count", 0)
    config = {
        **dense.granite_config(facts, tensors),
        **_beside(facts, tensors),
        "num_key_value_heads": max(kv_heads),
        "attention_bias": any(name.endswith("attn_q.bias") for name in tensors),
        "layer_types": ["full_attention" if heads else "linear_attention" for heads in kv_heads],
        # A reader turns queries and keys unless the file says that nothing is tuned for it.
        "position_embedding_type": "rope" if facts.get("rope.scaling.finetuned", True) else "nope",
        "shared_intermediate_size": facts.get("expert_shared_feed_forward_length") or facts["feed_forward_length"],
        "num_local_experts": experts,
        "num_experts_per_tok": facts["expert_used_count"] if experts else 2,
    }
    return {key: value for key, value in config.items() if key not in ("mlp_bias", "head_dim")}


def _granitehybrid_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (
        *OUTER,
        *recurrent.pre_norms("mixer", "attention"),
        *recurrent.mamba2_mixer(spec),
        *_attention(spec, RotaryInterleaved),
        *renames(THEIRS, BLOCK, _NETWORK),
        *mixtures.expert_rules(spec),
    )


_FALCON_H1_ATTENTION = tuple(
    rename(f"{THEIRS}.attn_{a}.{end}", f"{_BESIDE}.attention.branch.{b}.{end}")
    for a, b in (*zip("qkv", "qkv", strict=True), ("output", "out"))
    for end in ENDS
)


def _falcon_h1_facts(spec: Decoder.Spec) -> Facts:
    attention: Any = parts.branch_of(spec, "attention")
    rotary: Any = spec.stack.positions["rotary"]
    heads = attention.branch
    return {
        **recurrent.mamba2_facts(spec),
        "attention.head_count": heads.heads,
        "attention.head_count_kv": heads.kv_heads,
        "attention.key_length": heads.head_width,
        "attention.value_length": heads.head_width,
        "rope.dimension_count": rotary.width,
        "rope.freq_base": rotary.base,
        **parts.scaling_facts(rotary.scaling),
    }


def _falcon_h1_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The converter multiplies the matrices by the multipliers: what a file holds has none.
    return {
        **dense.llama_config(facts, tensors),
        **_beside(facts, tensors),
        "mamba_d_ssm": facts["ssm.inner_size"],
        "mamba_rms_norm": "blk.0.ssm_norm.weight" in tensors,
        "mamba_norm_before_gate": False,
    }


def _falcon_h1_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (
        *(rule for rule in OUTER if not rule.theirs.startswith("output_norm")),
        rename("output_norm.weight", "stack.final.weight"),
        rename(f"{THEIRS}.attn_norm.weight", f"{BLOCK}.parallel.pre.weight"),
        *recurrent.mamba2_mixer(spec, f"{_BESIDE}.mixer.branch"),
        *_FALCON_H1_ATTENTION,
        *renames(THEIRS, BLOCK, _NETWORK[:-1]),
        rename(f"{THEIRS}.ffn_norm", f"{BLOCK}.feed_forward.pre.weight"),
    )


def _lfm2_facts(spec: Decoder.Spec) -> Facts:
    rotary = parts.rotary_facts(spec)
    return {
        **rotary,
        **_by_layer(spec),
        "shortconv.l_cache": recurrent.mixer_of(spec).length if recurrent.mixer_of(spec) else 3,
    }


def _lfm2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    kv_heads, config = _kv_heads(facts), parts.rotary_config(facts, tensors, "norm_eps")
    return {
        **config,
        "num_key_value_heads": max(kv_heads),
        "layer_types": ["full_attention" if heads else "conv" for heads in kv_heads],
        "conv_L_cache": facts["shortconv.l_cache"],
        "conv_bias": any(name.endswith("shortconv.conv.bias") for name in tensors),
        "block_auto_adjust_ff_dim": False,
    }


def _lfm2_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    three = tuple(f"{MIXER}.{part}" for part in ("write", "read", "x"))
    return (
        *(rule for rule in OUTER if not rule.theirs.startswith("output_norm")),
        rename("token_embd_norm.weight", "stack.final.weight"),
        *recurrent.pre_norms("mixer", "attention"),
        *_attention(spec),
        *renames(THEIRS, BLOCK, (*_NETWORK, *dense.HEAD_NORMS)),
        *recurrent.convolution_rules("shortconv.conv", MIXER),
        *(fused(f"{THEIRS}.shortconv.in_proj.{end}", tuple(f"{part}.{end}" for part in three)) for end in ENDS),
        *(rename(f"{THEIRS}.shortconv.out_proj.{end}", f"{MIXER}.out.{end}") for end in ENDS),
    )


def _nemotron_h_facts(spec: Decoder.Spec) -> Facts:
    final: Any = spec.stack.final
    attention: Any = parts.branch_of(spec, "attention")
    widths: Any = [getattr(block.residuals.get("feed_forward"), "branch", None) for block in spec.stack.blocks]
    return {
        **recurrent.mamba2_facts(spec),
        "attention.layer_norm_epsilon": final.eps,  # its reader insists on this key too, and uses the other
        **_by_layer(spec),
        "attention.key_length": attention.head_width,
        "attention.value_length": attention.head_width,
        "feed_forward_length": [getattr(network, "hidden", 0) for network in widths],
    }


def _nemotron_h_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    kv_heads, networks = _kv_heads(facts), parts.for_each_layer(facts, "feed_forward_length")
    kinds = [
        "full_attention" if heads else "mlp" if hidden else "linear_attention"
        for heads, hidden in zip(kv_heads, networks, strict=True)
    ]
    inner, heads = facts["ssm.inner_size"], facts["ssm.time_step_rank"]
    # Nothing turns, and the norms are of the other kind, whatever these say.
    parts.pass_over(facts, "rope.dimension_count", "rope.freq_base", "attention.layer_norm_epsilon")
    return {
        "vocab_size": facts["vocab_size"],
        "hidden_size": facts["embedding_length"],
        "intermediate_size": max(max(networks), 1),
        "layers_block_type": kinds,
        "num_attention_heads": facts["attention.head_count"],
        "num_key_value_heads": max(kv_heads),
        "head_dim": facts["attention.key_length"],
        "max_position_embeddings": facts["context_length"],
        "layer_norm_epsilon": facts["attention.layer_norm_rms_epsilon"],
        "ssm_state_size": facts["ssm.state_size"],
        "mamba_num_heads": heads,
        "mamba_head_dim": inner // heads,
        "n_groups": facts["ssm.group_count"],
        "conv_kernel": facts["ssm.conv_kernel"],
        "use_bias": any(name.endswith("ssm_in.bias") for name in tensors),
        "use_conv_bias": any(name.endswith("ssm_conv1d.bias") for name in tensors),
        "mlp_bias": any(name.endswith("ffn_up.bias") for name in tensors),
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _nemotron_h_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (
        *OUTER,
        *recurrent.pre_norms("mixer", "attention", "feed_forward"),
        *recurrent.mamba2_mixer(spec),
        *_attention(spec),
        *renames(THEIRS, BLOCK, (("ffn_up", "feed_forward.branch.up"), ("ffn_down", "feed_forward.branch.down"))),
    )


def _jamba_facts(spec: Decoder.Spec) -> Facts:
    attention: Any = parts.branch_of(spec, "attention")
    networks: Any = [residual.branch for block in spec.stack.blocks for residual in [block.residuals["feed_forward"]]]
    hidden = next((getattr(one, "expert", one).hidden for one in networks), 0)
    experts = mixtures.expert_facts(spec) if mixtures.mixture_of(spec) else {}
    return {
        **recurrent.mamba_facts(spec),
        **_by_layer(spec),
        **experts,
        "feed_forward_length": hidden,
        "attention.head_count": attention.heads,
    }


def _jamba_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    kv_heads, layers = _kv_heads(facts), range(facts["block_count"])
    mixes = [f"blk.{i}.ffn_gate_inp.weight" in tensors for i in layers]
    return {
        **parts.sizes_config(facts),
        "num_key_value_heads": max(kv_heads),
        "max_position_embeddings": facts["context_length"],
        "rms_norm_eps": facts["attention.layer_norm_rms_epsilon"],
        "num_experts": facts.get("expert_count", 1) or 1,
        "num_experts_per_tok": facts.get("expert_used_count", 2) or 2,
        **_every("attn_layer", [bool(heads) for heads in kv_heads]),
        **_every("expert_layer", mixes),
        "mamba_expand": facts["ssm.inner_size"] // facts["embedding_length"],
        "mamba_d_state": facts["ssm.state_size"],
        "mamba_d_conv": facts["ssm.conv_kernel"],
        "mamba_dt_rank": facts["ssm.time_step_rank"],
        "mamba_conv_bias": any(name.endswith("ssm_conv1d.bias") for name in tensors),
        "mamba_proj_bias": any(name.endswith("ssm_in.bias") for name in tensors),
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _every(kind: str, there: Sequence[bool]) -> Config:
    """Return the two keys that say at which layers something stands: every so many, from one on.

    Raises:
        ModelFileError: the layers are no such row.
    """
    found = [layer for layer, one in enumerate(there) if one] or [len(there)]
    offset, period = found[0], found[1] - found[0] if len(found) > 1 else len(there) + 1
    if [layer % period == offset for layer in range(len(there))] == list(there):
        return {f"{kind}_period": period, f"{kind}_offset": offset}
    raise ModelFileError(f"{kind}: the layers {found} are no even row", dense.HINT)


def _jamba_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (
        *OUTER,
        *recurrent.pre_norms("mixer", "attention"),
        *recurrent.mamba_mixer(),
        *_attention(spec),
        *renames(THEIRS, BLOCK, _NETWORK),
        *mixtures.expert_rules(spec),
    )


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "falcon_h1": _Row("falcon-h1", _falcon_h1_facts, _falcon_h1_config, _falcon_h1_rules),
    "granitemoehybrid": _Row(
        "granitehybrid", _granitehybrid_facts, _granitehybrid_config, _granitehybrid_rules, listed=_LISTED
    ),
    "jamba": _Row("jamba", _jamba_facts, _jamba_config, _jamba_rules, rotary=False, listed=_LISTED),
    "lfm2": _Row("lfm2", _lfm2_facts, _lfm2_config, _lfm2_rules, listed=_LISTED),
    "nemotron_h": _Row(
        "nemotron_h", _nemotron_h_facts, _nemotron_h_config, _nemotron_h_rules, partial=True, listed=_LISTED
    ),
}
"""By ``model_type``."""
