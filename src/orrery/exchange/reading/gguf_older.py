"""Older decoders of GGUF files: GPT-NeoX, Falcon, MPT, StarCoder, StableLM, OLMo and Command R.

Where a published file has q, k and v in one matrix head by head, a GGUF file has all of q, then k, then v.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import RotaryInterleaved, Stacked
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.exchange.reading import gguf_dense as dense
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import BLOCK, NORMS, OUTER, ROTARY_MATRICES, THEIRS, Config, Facts
from orrery.models.decoder import Decoder
from orrery.nn.elementwise import Clamp
from orrery.nn.spec import traverse

_ENDS = ("weight", "bias")
_NORMED = ("parallel.branch.attention.branch", "parallel.branch.feed_forward.branch")
_BARE = ("parallel.branch.attention", "parallel.branch.feed_forward")
_BEHIND = ("attention.branch", "feed_forward.branch")
"""Where a block keeps its branches: side by side with norms of their own, side by side, one behind the other."""


def _whole(places: tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules of branches in these places whose q, k and v are one matrix, in that order."""
    attention, network = places
    pairs = (("attn_output", f"{attention}.out"), ("ffn_up", f"{network}.up"), ("ffn_down", f"{network}.down"))
    joined = (
        fused(f"{THEIRS}.attn_qkv.{end}", tuple(f"{BLOCK}.{attention}.{x}.{end}" for x in "qkv")) for end in _ENDS
    )
    return (*renames(THEIRS, BLOCK, pairs), *joined)


def _places(spec: Decoder.Spec) -> tuple[str, str]:
    """Return where a model's blocks keep their branches."""
    if "parallel" not in spec.stack.blocks[0].residuals:
        return _BEHIND
    return _NORMED if hasattr(parts.branch_of(spec, "attention"), "branch") else _BARE


def _inside(spec: Decoder.Spec, role: str) -> Any:
    branch = parts.branch_of(spec, role)
    return getattr(branch, "branch", branch)


def _facts(spec: Decoder.Spec, positions: str = "rotary") -> Facts:
    """Return the facts of a model that rotates, whose branches may have norms of their own."""
    attention, rotary = _inside(spec, "attention"), spec.stack.positions[positions]
    turns: Any = rotary
    return {
        **parts.layer_norm_facts(spec),
        "feed_forward_length": _inside(spec, "feed_forward").hidden,
        "attention.head_count": attention.heads,
        "attention.head_count_kv": attention.kv_heads,
        "rope.dimension_count": getattr(turns, "width", 0),
        "rope.freq_base": getattr(turns, "base", 0.0),
        **parts.scaling_facts(getattr(turns, "scaling", None)),
    }


def _neox_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    parts.pass_over(facts, "attention.head_count_kv")  # the family has as many as heads
    return {
        **parts.sizes_config(facts),
        "max_position_embeddings": facts["context_length"],
        "layer_norm_eps": facts["attention.layer_norm_epsilon"],
        "rotary_pct": _share(facts),
        "rotary_emb_base": facts["rope.freq_base"],
        "rope_scaling": parts.scaling_config(facts),
        "use_parallel_residual": facts.get("use_parallel_residual", True),
        "attention_bias": "blk.0.attn_qkv.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _share(facts: Mapping[str, Any]) -> float:
    """Return which part of a head turns, where heads share the width."""
    return float(facts["rope.dimension_count"] / (facts["embedding_length"] // facts["attention.head_count"]))


def _neox_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    side_by_side = (("attn_norm", "parallel.branch.attention.norm"), ("ffn_norm", "parallel.branch.feed_forward.norm"))
    return (*OUTER, *renames(THEIRS, BLOCK, (*NORMS, *side_by_side)), *_whole(_places(spec)))


def _falcon_facts(spec: Decoder.Spec) -> Facts:
    return {**_facts(spec, "position"), "tensor_data_layout": "jploski"}


def _falcon_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # Two norms make the larger models of the first generation, whose keys are shared in groups.
    two, kv_heads = "blk.0.attn_norm_2.weight" in tensors, facts["attention.head_count_kv"]
    parts.pass_over(facts, "tensor_data_layout")
    return {
        "vocab_size": facts["vocab_size"],
        "hidden_size": facts["embedding_length"],
        "ffn_hidden_size": facts["feed_forward_length"],
        "num_hidden_layers": facts["block_count"],
        "num_attention_heads": facts["attention.head_count"],
        "num_kv_heads": kv_heads,
        "new_decoder_architecture": two or kv_heads not in (1, facts["attention.head_count"]),
        "num_ln_in_parallel_attn": 2 if two else 1,
        "multi_query": kv_heads == 1,
        "max_position_embeddings": facts["context_length"],
        "layer_norm_epsilon": facts["attention.layer_norm_epsilon"],
        "rope_theta": facts["rope.freq_base"],
        "rope_scaling": parts.scaling_config(facts),
        "bias": "blk.0.attn_qkv.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _falcon_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    two = (("attn_norm_2", "parallel.branch.attention.norm"), ("attn_norm", "parallel.branch.feed_forward.norm"))
    return (*OUTER, *renames(THEIRS, BLOCK, (("attn_norm", "parallel.pre"), *two)), *_whole(_places(spec)))


def _clip(spec: Decoder.Spec) -> Facts:
    bounds = [part.bound for _, part in traverse(spec.stack.blocks[0]) if isinstance(part, Clamp.Spec)]
    return {"attention.clamp_kqv": bounds[0]} if bounds else {}


def _mpt_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.layer_norm_facts(spec), "attention.max_alibi_bias": 8.0, **_clip(spec)}


def _mpt_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    alibi = {"alibi": facts.get("attention.max_alibi_bias", 0.0) == 8.0}
    return {
        "vocab_size": facts["vocab_size"],
        "d_model": facts["embedding_length"],
        "expansion_ratio": facts["feed_forward_length"] / facts["embedding_length"],
        "n_heads": facts["attention.head_count"],
        "n_layers": facts["block_count"],
        "max_seq_len": facts["context_length"],
        "layer_norm_epsilon": facts["attention.layer_norm_epsilon"],
        "attn_config": {"clip_qkv": facts.get("attention.clamp_kqv") or None, **alibi},
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _mpt_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*OUTER, *renames(THEIRS, BLOCK, NORMS), *_whole(_BEHIND))


def _bigcode_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.layer_norm_facts(spec), "attention.head_count_kv": parts.branch_of(spec, "attention").kv_heads}


def _bigcode_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **parts.gpt2_config(facts),
        "multi_query": facts.get("attention.head_count_kv", facts["attention.head_count"]) == 1,
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _bigcode_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    table = rename("position_embd.weight", "stack.positions.learned.table.weight")
    return (*OUTER, table, *renames(THEIRS, BLOCK, NORMS), *_whole(_BEHIND))


def _facts_of_branches(spec: Decoder.Spec) -> Facts:
    return {**_facts(spec), "use_parallel_residual": "parallel" in spec.stack.blocks[0].residuals}


def _stablelm_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    parts.pass_over(facts, "use_parallel_residual")  # its reader goes by the second norm, which such a model lacks
    return {
        **parts.rotary_config(facts, tensors, "layer_norm_eps"),
        "partial_rotary_factor": _share(facts),
        "use_qkv_bias": "blk.0.attn_q.bias" in tensors,
        "qk_layernorm": "blk.0.attn_q_norm.weight" in tensors,
        "use_parallel_residual": "blk.0.ffn_norm.weight" not in tensors,
    }


def _stablelm_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    attention, network = _places(spec)
    renamed = {"attention.branch": attention, "feed_forward.branch": network}
    matrices = [
        (theirs, f"{renamed[start]}.{part}")
        for theirs, ours in ROTARY_MATRICES
        for start, part in [ours.rsplit(".", 1)]
    ]
    return (
        *OUTER,
        *renames(THEIRS, BLOCK, (*NORMS, ("attn_norm", "parallel.pre"), *matrices)),
        *parts.head_rules(spec, ours=f"{BLOCK}.{attention}"),
        *_stacked_norms(spec, attention),
    )


def _stacked_norms(spec: Decoder.Spec, attention: str) -> tuple[Rule, ...]:
    """Return the rules of norms that have gains of their own for each head."""
    heads = {"q": _inside(spec, "attention").heads, "k": _inside(spec, "attention").kv_heads}
    return tuple(
        Rule(
            f"{THEIRS}.attn_{x}_norm.weight",
            tuple(f"{BLOCK}.{attention}.{x}_norm.gains.{head}" for head in range(heads[x])),
            Stacked(),
        )
        for x in "qk"
    )


def _olmo_facts(spec: Decoder.Spec) -> Facts:
    return {**_facts(spec), **_clip(spec)}


def _olmo_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    parts.pass_over(facts, "attention.layer_norm_epsilon")  # the family has the one that all its files have
    config = parts.rotary_config(facts, tensors, "layer_norm_eps")
    clip = {"clip_qkv": facts.get("attention.clamp_kqv") or None, "attention_bias": "blk.0.attn_q.bias" in tensors}
    return {**{key: value for key, value in config.items() if key != "layer_norm_eps"}, **clip}


def _olmo_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*OUTER, *renames(THEIRS, BLOCK, ROTARY_MATRICES), *parts.head_rules(spec, RotaryInterleaved))


def _cohere_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*dense.cohere_rules(spec), *_stacked_norms(spec, "parallel.branch.attention"))


def _cohere_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader knows the larger model by its 64 layers; it alone has norms of heads.
    return {**dense.cohere_config(facts, tensors), "use_qk_norm": facts["block_count"] >= 64}


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "cohere": _Row("command-r", dense.cohere_facts, _cohere_config, _cohere_rules),
    "falcon": _Row("falcon", _falcon_facts, _falcon_config, _falcon_rules),
    "gpt_bigcode": _Row("starcoder", _bigcode_facts, _bigcode_config, _bigcode_rules, rotary=False),
    "gpt_neox": _Row("gptneox", _facts_of_branches, _neox_config, _neox_rules, partial=True),
    "mpt": _Row("mpt", _mpt_facts, _mpt_config, _mpt_rules, rotary=False),
    "olmo": _Row("olmo", _olmo_facts, _olmo_config, _olmo_rules),
    "stablelm": _Row("stablelm", _facts_of_branches, _stablelm_config, _stablelm_rules, partial=True),
}
"""By ``model_type``."""
