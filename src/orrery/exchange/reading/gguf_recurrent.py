"""State spaces in GGUF files: Mamba and Mamba-2, whose mixers also stand beside attention.

A file holds the rates A themselves, negative; ours are their logarithms.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import Column, Depthwise, Grouped, NegativeExponential
from orrery.checkpoints.rules import Rule, fused, rename
from orrery.errors import ModelFileError
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import BLOCK, OUTER, THEIRS, Config, Facts
from orrery.models.decoder import Decoder

MIXER = f"{BLOCK}.mixer.branch"
ENDS = ("weight", "bias")


def pre_norms(*roles: str) -> tuple[Rule, ...]:
    """Return the rules that a layer's first norm is that of whichever mixer it has."""
    return tuple(rename(f"{THEIRS}.attn_norm.weight", f"{BLOCK}.{role}.pre.weight") for role in roles)


def convolution_rules(theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of a short convolution."""
    filters = Rule(f"{THEIRS}.{theirs}.weight", (f"{ours}.convolution.weight",), Depthwise())
    return (filters, rename(f"{THEIRS}.{theirs}.bias", f"{ours}.convolution.bias"))


def mamba_mixer(ours: str = MIXER) -> tuple[Rule, ...]:
    """Return the rules of Mamba's mixer."""
    norms = (("dt", "step"), ("b", "write"), ("c", "read"))
    return (
        *convolution_rules("ssm_conv1d", ours),
        *(fused(f"{THEIRS}.ssm_in.{end}", (f"{ours}.x.{end}", f"{ours}.gate.{end}")) for end in ENDS),
        fused(f"{THEIRS}.ssm_x.weight", tuple(f"{ours}.{part}.weight" for part in ("step_down", "write", "read"))),
        *(rename(f"{THEIRS}.ssm_dt.{end}", f"{ours}.step_up.{end}") for end in ENDS),
        *(rename(f"{THEIRS}.ssm_out.{end}", f"{ours}.out.{end}") for end in ENDS),
        *(rename(f"{THEIRS}.ssm_{a}_norm.weight", f"{ours}.{b}_norm.weight") for a, b in norms),
        Rule(f"{THEIRS}.ssm_a", (f"{ours}.a_log",), NegativeExponential()),
        rename(f"{THEIRS}.ssm_d", f"{ours}.skip"),
    )


def mamba2_mixer(spec: Decoder.Spec, ours: str = MIXER) -> tuple[Rule, ...]:
    """Return the rules of Mamba-2's mixer."""
    projections = ("gate", "x", "write", "read", "step_size")
    return (
        *convolution_rules("ssm_conv1d", ours),
        *(fused(f"{THEIRS}.ssm_in.{end}", tuple(f"{ours}.{part}.{end}" for part in projections)) for end in ENDS),
        *(rename(f"{THEIRS}.ssm_out.{end}", f"{ours}.out.{end}") for end in ENDS),
        rename(f"{THEIRS}.ssm_dt.bias", f"{ours}.step_bias"),
        Rule(f"{THEIRS}.ssm_a", (f"{ours}.a_log",), NegativeExponential(axes=1)),
        Rule(f"{THEIRS}.ssm_d", (f"{ours}.skip",), Column()),
        Rule(f"{THEIRS}.ssm_norm.weight", (f"{ours}.norm",), Grouped(getattr(mixer_of(spec), "groups", 1))),
    )


def mixer_of(spec: Decoder.Spec) -> Any:
    """Return the first mixer with a state, without what may stand around it."""
    mixer = parts.branch_of(spec, "mixer")
    return getattr(mixer, "branch", mixer)


def mamba_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model with Mamba's mixer, but those of its attention."""
    mixer = mixer_of(spec)
    return {
        **parts.sizes(spec, "layer_norm_rms_epsilon"),
        "ssm.conv_kernel": mixer.length,
        "ssm.inner_size": mixer.hidden,
        "ssm.state_size": mixer.state,
        "ssm.time_step_rank": mixer.rank,
    }


def _falcon_mamba_facts(spec: Decoder.Spec) -> Facts:
    return {**mamba_facts(spec), "ssm.dt_b_c_rms": True}


def mamba2_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model with Mamba-2's mixer, but those of its attention."""
    mixer = mixer_of(spec)
    return {
        **parts.sizes(spec, "layer_norm_rms_epsilon"),
        "ssm.conv_kernel": mixer.length,
        "ssm.inner_size": mixer.heads * mixer.head_width,
        "ssm.state_size": mixer.state,
        "ssm.time_step_rank": mixer.heads,
        "ssm.group_count": mixer.groups,
    }


def _alone(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of Mamba and Mamba-2 where nothing stands beside them."""
    for key in ("attention.head_count", "feed_forward_length"):
        if facts.get(key, 0):
            raise ModelFileError(f"{key} = {facts[key]}, and this architecture has none", "get the file again")
    return {
        "vocab_size": facts["vocab_size"],
        "hidden_size": facts["embedding_length"],
        "num_hidden_layers": facts["block_count"],
        "max_position_embeddings": facts["context_length"],
        "layer_norm_epsilon": facts["attention.layer_norm_rms_epsilon"],
        "conv_kernel": facts["ssm.conv_kernel"],
        "state_size": facts["ssm.state_size"],
        "use_bias": "blk.0.ssm_in.bias" in tensors,
        "use_conv_bias": "blk.0.ssm_conv1d.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _mamba_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    own = {"intermediate_size": facts["ssm.inner_size"], "time_step_rank": facts["ssm.time_step_rank"]}
    return {**_alone(facts, tensors), **own}


def _falcon_mamba_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # A reader takes the one epsilon of the file for the norms inside the mixer too.
    parts.pass_over(facts, "ssm.dt_b_c_rms")
    return {**_mamba_config(facts, tensors), "mixer_rms_eps": facts["attention.layer_norm_rms_epsilon"]}


def _mamba2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    inner, heads = facts["ssm.inner_size"], facts["ssm.time_step_rank"]
    return {
        **_alone(facts, tensors),
        "expand": inner / facts["embedding_length"],
        "num_heads": heads,
        "head_dim": inner // heads,
        "n_groups": facts["ssm.group_count"],
    }


def _mamba_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*OUTER, *pre_norms("mixer"), *mamba_mixer())


def _mamba2_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*OUTER, *pre_norms("mixer"), *mamba2_mixer(spec))


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "falcon_mamba": _Row(
        "mamba", _falcon_mamba_facts, _falcon_mamba_config, _mamba_rules, rotary=False, told_by="ssm.dt_b_c_rms"
    ),
    "mamba": _Row("mamba", mamba_facts, _mamba_config, _mamba_rules, rotary=False),
    "mamba2": _Row("mamba2", mamba2_facts, _mamba2_config, _mamba2_rules, rotary=False),
}
"""By ``model_type``."""
