"""The architectures that Orrery and llama.cpp both know: facts of a spec, and rules for the names of its tensors.

A GGUF file says less than ``config.json``: its reader knows the activation, the scale of the scores and much else by
the architecture's name alone. So each entry also says which configuration a reader makes of the facts, and an export
whose model is not that of this configuration is refused, with the setting that cannot be said.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.layouts import ROWS, Layout, RotaryInterleaved, Shifted
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.models.decoder import Decoder
from orrery.nn.positions.rotary import Linear, Llama3, Rotary, Scaling, Unscaled, Yarn, plain_rates

Facts = dict[str, Any]
Config = dict[str, Any]


@dataclass(frozen=True)
class GgufArchitecture:
    """One architecture of llama.cpp.

    Attributes:
        name: llama.cpp's.
        facts: from a spec, without the name in front.
        config: what a reader makes of the facts and of the names of the tensors: a ``config.json``.
        rules: from llama.cpp's tensors to ours.
    """

    name: str
    facts: Callable[[Decoder.Spec], Facts]
    config: Callable[[Mapping[str, Any], Collection[str]], Config]
    rules: Callable[[Decoder.Spec], tuple[Rule, ...]]


def written_tensors(spec: Decoder.Spec) -> dict[str, Tensor]:
    """Return the tensors of a file that are no parameters of ours: the slowing of every rotary pair in Llama 3.1."""
    rotary = spec.stack.positions.get("rotary")
    if not isinstance(rotary, Rotary.Spec) or not isinstance(rotary.scaling, Llama3):
        return {}
    slowed = rotary.scaling.rates(rotary.base, rotary.width, spec.context)
    return {"rope_freqs.weight": (plain_rates(rotary.base, rotary.width) / slowed).to(torch.float32)}


def scaling_of(factors: Tensor, base: float, context: int) -> Config:
    """Return how the file slows its rotary pairs: Llama 3.1's rule where it gives these factors, else one by one.

    A file says by what each pair is divided, and not why.
    """
    width = 2 * factors.numel()
    plain = plain_rates(base, width)
    for trained in dict.fromkeys((8192, context, *(2**power for power in range(3, 21)))):
        rule = Llama3(factor=float(factors.max()), low_frequency=1.0, high_frequency=4.0, trained=trained)
        slowed = (plain / rule.rates(base, width, context)).to(torch.float32)
        if torch.equal(slowed, factors.to(torch.float32)):
            return {
                "rope_type": "llama3",
                "factor": rule.factor,
                "low_freq_factor": rule.low_frequency,
                "high_freq_factor": rule.high_frequency,
                "original_max_position_embeddings": trained,
            }
    by_pair = factors.double().tolist()
    return {
        "rope_type": "longrope",
        "short_factor": by_pair,
        "long_factor": by_pair,
        "attention_factor": 1.0,
        "factor": 1.0,
        "original_max_position_embeddings": context,
    }


def stated(spec: Decoder.Spec) -> Decoder.Spec:
    """Return what the facts have to say of a spec: all but what ``written_tensors`` says."""
    if not written_tensors(spec):
        return spec
    rotary: Any = spec.stack.positions["rotary"]
    positions = {**spec.stack.positions, "rotary": replace(rotary, scaling=Unscaled())}
    return replace(spec, stack=replace(spec.stack, positions=positions))


def _branch(spec: Decoder.Spec, role: str) -> Any:
    """Return a branch of the first block; that all blocks are like it shows when the configuration is read back."""
    residual: Any = spec.stack.blocks[0].residuals[role]
    return residual.branch


def _sizes(spec: Decoder.Spec, epsilon: str) -> Facts:
    """Return the facts of every architecture; ``epsilon`` names that of its norms."""
    final: Any = spec.stack.final
    return {
        "vocab_size": spec.embed.vocabulary,
        "context_length": spec.context,
        "embedding_length": spec.width,
        "block_count": len(spec.stack.blocks),
        "feed_forward_length": _branch(spec, "feed_forward").hidden,
        "attention.head_count": _branch(spec, "attention").heads,
        f"attention.{epsilon}": final.eps,
    }


def _layer_norm_facts(spec: Decoder.Spec) -> Facts:
    return _sizes(spec, "layer_norm_epsilon")


def _rotary_facts(spec: Decoder.Spec) -> Facts:
    attention = _branch(spec, "attention")
    rotary: Any = spec.stack.positions["rotary"]
    return {
        **_sizes(spec, "layer_norm_rms_epsilon"),
        "attention.head_count_kv": attention.kv_heads,
        "attention.key_length": attention.head_width,
        "attention.value_length": attention.head_width,
        "rope.dimension_count": rotary.width,
        "rope.freq_base": rotary.base,
        **_scaling_facts(rotary.scaling),
    }


def _scaling_facts(scaling: Scaling) -> Facts:
    """Return how the rates are scaled; a kind that has no facts is found missing in the configuration read back."""
    match scaling:
        case Linear():
            return {"rope.scaling.type": "linear", "rope.scaling.factor": scaling.factor}
        case Yarn():
            facts = {"rope.scaling.type": "yarn", "rope.scaling.factor": scaling.factor}
            return {**facts, "rope.scaling.original_context_length": scaling.trained}
    return {}


def _scaling_config(facts: Mapping[str, Any]) -> Config | None:
    if "rope.scaling.type" not in facts:
        return None
    scaling = {"rope_type": facts["rope.scaling.type"], "factor": facts["rope.scaling.factor"]}
    trained = facts.get("rope.scaling.original_context_length")
    return scaling if trained is None else {**scaling, "original_max_position_embeddings": trained}


def _rotary_config(facts: Mapping[str, Any]) -> Config:
    """Return the keys that Llama and its descendants share."""
    return {
        "vocab_size": facts["vocab_size"],
        "hidden_size": facts["embedding_length"],
        "intermediate_size": facts["feed_forward_length"],
        "num_hidden_layers": facts["block_count"],
        "num_attention_heads": facts["attention.head_count"],
        "num_key_value_heads": facts["attention.head_count_kv"],
        "max_position_embeddings": facts["context_length"],
        "rms_norm_eps": facts["attention.layer_norm_rms_epsilon"],
        "rope_theta": facts["rope.freq_base"],
        "rope_scaling": _scaling_config(facts),
    }


_BLOCK, _THEIRS = "stack.blocks.{i}", "blk.{i}"
_OUTER = (
    rename("token_embd.weight", "embed.token.weight"),
    *(rename(f"output_norm.{p}", f"stack.final.{p}") for p in ("weight", "bias")),
    rename("output.weight", "head.vocabulary.weight"),
)
_NORMS = (("attn_norm", "attention.pre"), ("ffn_norm", "feed_forward.pre"))
_MATRICES = (
    ("attn_output", "attention.branch.out"),
    ("ffn_up", "feed_forward.branch.up"),
    ("ffn_down", "feed_forward.branch.down"),
)
_ROTARY_MATRICES = (*_MATRICES, ("ffn_gate", "feed_forward.branch.gate"), ("attn_v", "attention.branch.v"))


def _heads(spec: Decoder.Spec, layout: Callable[[int], Layout]) -> tuple[Rule, ...]:
    """Return the rules of q and k, whose layout depends on their heads."""
    attention = _branch(spec, "attention")
    return tuple(
        Rule(f"{_THEIRS}.attn_{x}.{p}", (f"{_BLOCK}.attention.branch.{x}.{p}",), layout(heads))
        for x, heads in (("q", attention.heads), ("k", attention.kv_heads))
        for p in ("weight", "bias")
    )


def _plain(heads: int) -> Layout:
    return ROWS


# GPT-2 and BLOOM


def _fused_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    together = (
        fused(f"{_THEIRS}.attn_qkv.{p}", tuple(f"{_BLOCK}.attention.branch.{x}.{p}" for x in "qkv"))
        for p in ("weight", "bias")
    )
    return (
        *_OUTER,
        rename("position_embd.weight", "stack.positions.learned.table.weight"),
        *(rename(f"token_embd_norm.{p}", f"stack.start.{p}") for p in ("weight", "bias")),
        *renames(_THEIRS, _BLOCK, (*_NORMS, *_MATRICES)),
        *together,
    )


def _gpt2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        "vocab_size": facts["vocab_size"],
        "n_positions": facts["context_length"],
        "n_embd": facts["embedding_length"],
        "n_layer": facts["block_count"],
        "n_inner": facts["feed_forward_length"],
        "n_head": facts["attention.head_count"],
        "layer_norm_epsilon": facts["attention.layer_norm_epsilon"],
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _bloom_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    if facts["feed_forward_length"] != 4 * facts["embedding_length"]:
        raise ModelFileError("a BLOOM is four times as wide inside as outside, and this file is not", "get it again")
    return {
        "vocab_size": facts["vocab_size"],
        "seq_length": facts["context_length"],
        "hidden_size": facts["embedding_length"],
        "n_layer": facts["block_count"],
        "n_head": facts["attention.head_count"],
        "layer_norm_epsilon": facts["attention.layer_norm_epsilon"],
        "tie_word_embeddings": "output.weight" not in tensors,
    }


# Llama and its descendants


def _llama_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*_OUTER, *renames(_THEIRS, _BLOCK, (*_NORMS, *_ROTARY_MATRICES)), *_heads(spec, RotaryInterleaved))


def _llama_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **_rotary_config(facts),
        "head_dim": facts["attention.key_length"],
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def _qwen_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    norms = (("attn_q_norm", "attention.branch.q_norm.norm"), ("attn_k_norm", "attention.branch.k_norm.norm"))
    return (*_OUTER, *renames(_THEIRS, _BLOCK, (*_NORMS, *norms, *_ROTARY_MATRICES)), *_heads(spec, _plain))


def _qwen2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**_rotary_config(facts), "tie_word_embeddings": "output.weight" not in tensors}


def _qwen3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**_qwen2_config(facts, tensors), "head_dim": facts["attention.key_length"]}


def _mistral_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**_qwen3_config(facts, tensors), "sliding_window": None}


# Gemma


def _gemma_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    norms = (*_NORMS, ("post_attention_norm", "attention.post"), ("post_ffw_norm", "feed_forward.post"))
    return (
        *(rule for rule in _OUTER if not rule.theirs.startswith("output_norm")),
        Rule("output_norm.weight", ("stack.final.weight",), Shifted(1.0)),
        *(Rule(f"{_THEIRS}.{theirs}.weight", (f"{_BLOCK}.{ours}.weight",), Shifted(1.0)) for theirs, ours in norms),
        *renames(_THEIRS, _BLOCK, _ROTARY_MATRICES),
        *_heads(spec, _plain),
    )


def _gemma_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**_rotary_config(facts), "head_dim": facts["attention.key_length"]}


def _gemma2_facts(spec: Decoder.Spec) -> Facts:
    head: Any = spec.head
    windows = [mask.window for mask in spec.stack.masks.values() if mask.window is not None]
    caps = {
        "attention.sliding_window": windows[0] if windows else None,
        "attn_logit_softcapping": _branch(spec, "attention").scoring.cap,
        "final_logit_softcapping": getattr(head.cap, "cap", None),
    }
    return {**_rotary_facts(spec), **{key: number for key, number in caps.items() if number is not None}}


def _gemma2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader knows the 27B model by its 46 layers; it alone scales by the width that a head would have.
    largest = facts["block_count"] == 46
    scale = facts["embedding_length"] // facts["attention.head_count"] if largest else facts["attention.key_length"]
    return {
        **_gemma_config(facts, tensors),
        "query_pre_attn_scalar": scale,
        "sliding_window": facts.get("attention.sliding_window", 4096),
        "attn_logit_softcapping": facts.get("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": facts.get("final_logit_softcapping", 30.0),
    }


ARCHITECTURES = {
    "gpt2": GgufArchitecture("gpt2", _layer_norm_facts, _gpt2_config, _fused_rules),
    "bloom": GgufArchitecture("bloom", _layer_norm_facts, _bloom_config, _fused_rules),
    "llama": GgufArchitecture("llama", _rotary_facts, _llama_config, _llama_rules),
    "mistral": GgufArchitecture("llama", _rotary_facts, _mistral_config, _llama_rules),
    "qwen2": GgufArchitecture("qwen2", _rotary_facts, _qwen2_config, _qwen_rules),
    "qwen3": GgufArchitecture("qwen3", _rotary_facts, _qwen3_config, _qwen_rules),
    "gemma": GgufArchitecture("gemma", _rotary_facts, _gemma_config, _gemma_rules),
    "gemma2": GgufArchitecture("gemma2", _gemma2_facts, _gemma2_config, _gemma_rules),
}
"""By ``model_type``."""
