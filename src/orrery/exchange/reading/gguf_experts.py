"""Decoders of GGUF files with rules of their own for experts: DeepSeek, gpt-oss, GLM-4.5, ERNIE 4.5, MiniMax.

Their files say how a score is made, whether the weights of the chosen sum to one and by what they are multiplied, how
many layers in front are dense, and how many networks every token passes.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from orrery.checkpoints.layouts import Grouped, GroupInterleaved, GroupTransposed
from orrery.checkpoints.rules import Rule, fused, renames
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading import gguf_dense as dense
from orrery.exchange.reading import gguf_mixtures as mixtures
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import BLOCK, NORMS, OUTER, ROTARY_MATRICES, THEIRS, Config, Facts
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import SigmoidRouter
from orrery.nn.positions.rotary import Yarn

SOFTMAX, SIGMOID, SOFTMAX_OF_CHOSEN = 1, 2, 3
"""llama.cpp's numbers for how scores are made."""


def _unsaid(what: str) -> UsageError:
    """Return the error of a model that a file can name, and that llama.cpp would not compute."""
    return UsageError(f"llama.cpp {what}", "export to hf")


def _mixing(spec: Decoder.Spec) -> list[int]:
    """Return the layers that have experts.

    Raises:
        UsageError: none has.
    """
    networks = [block.residuals["feed_forward"].branch for block in spec.stack.blocks]
    mixing = [i for i, network in enumerate(networks) if isinstance(network, MoE.Spec)]
    if not mixing:
        raise _unsaid("wants experts in at least one layer of this architecture, and all are dense here")
    return mixing


def _mixture_of(spec: Decoder.Spec) -> Any:
    return spec.stack.blocks[_mixing(spec)[0]].residuals["feed_forward"].branch


def _facts_of_experts(spec: Decoder.Spec) -> Facts:
    """Return the facts of the mixtures behind the dense layers in front."""
    dense_first, mixture = _mixing(spec)[0], _mixture_of(spec)
    router, small = mixture.router, mixture.expert.hidden
    wide = parts.branch_of(spec, "feed_forward").hidden if dense_first else small
    return {
        "feed_forward_length": wide,
        "expert_count": router.experts,
        "expert_used_count": router.choice.chosen,
        "expert_feed_forward_length": small,
        "expert_gating_func": SIGMOID if isinstance(router, SigmoidRouter.Spec) else SOFTMAX,
        **({"leading_dense_block_count": dense_first} if dense_first else {}),
        **({"expert_shared_count": mixture.shared[0].hidden // small} if mixture.shared else {}),
    }


def _check_scores(facts: Mapping[str, Any], *known: int) -> None:
    """Refuse a file whose scores are made otherwise than its architecture's; a file need not say how.

    Raises:
        ModelFileError: it says another way.
    """
    way = facts.get("expert_gating_func") or known[0]
    if way not in known:
        raise ModelFileError(f"expert_gating_func = {way}: in this architecture only {known[0]} is built", dense.HINT)


def _facts_of_weighing(spec: Decoder.Spec) -> Facts:
    """Return by what the weights of the chosen are multiplied, and among which groups experts are chosen."""
    router = _mixture_of(spec).router
    groups = getattr(router.choice, "groups", 1)
    grouped = {"expert_group_count": groups, "expert_group_used_count": getattr(router.choice, "kept", 1)}
    return {
        "expert_weights_scale": router.weighing.scale,
        "expert_weights_norm": hasattr(router.weighing, "eps"),
        **(grouped if groups > 1 else {}),
    }


def _experts_config(facts: Mapping[str, Any]) -> Config:
    """Return the keys of DeepSeek's mixtures, which GLM-4.5 has too; layers that predict further tokens are left out.

    The weights of the chosen are multiplied by one where a file says nothing, or zero.
    """
    return {
        "num_hidden_layers": facts["block_count"] - facts.get("nextn_predict_layers", 0),
        "n_routed_experts": facts["expert_count"],
        "num_experts_per_tok": facts["expert_used_count"],
        "moe_intermediate_size": facts["expert_feed_forward_length"],
        "n_shared_experts": facts.get("expert_shared_count", 0) or None,
        "first_k_dense_replace": facts.get("leading_dense_block_count", 0),
        "n_group": facts.get("expert_group_count", 1) or 1,
        "topk_group": facts.get("expert_group_used_count", 1) or 1,
        "norm_topk_prob": bool(facts.get("expert_weights_norm", False)),
        "routed_scaling_factor": facts.get("expert_weights_scale", 1.0) or 1.0,
    }


# GLM-4.5


def _glm_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.rotary_facts(spec), **_facts_of_experts(spec), **_facts_of_weighing(spec)}


def _glm_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    _check_scores(facts, SIGMOID)
    return {
        **dense.whole_config(facts, tensors),
        **_experts_config(facts),
        "partial_rotary_factor": parts.rotated_share(facts),
        "use_qk_norm": "blk.0.attn_q_norm.weight" in tensors,
    }


# gpt-oss


def _gpt_oss_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.rotary_facts(spec), **parts.pattern_facts(spec), **_facts_of_experts(spec)}


def _gpt_oss_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # Every second layer sees everything, and there are biases and a head whatever the file holds. The ramp of its
    # YaRN is not rounded, though llama.cpp rounds that of all models.
    _check_scores(facts, SOFTMAX, SOFTMAX_OF_CHOSEN)
    config = {**dense.whole_config(facts, tensors), **mixtures.expert_config(facts, "num_local_experts")}
    scaling = config.pop("rope_scaling")
    rotation = {"rope_type": "default"} if scaling is None else {**scaling, "truncate": False}
    return {
        **config,
        "intermediate_size": facts["expert_feed_forward_length"],
        "attention_bias": True,
        "tie_word_embeddings": False,
        "sliding_window": facts["attention.sliding_window"],
        **parts.layer_kinds(facts),
        "rope_parameters": {**rotation, "rope_theta": facts["rope.freq_base"]},
    }


def _gpt_oss_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (
        *OUTER,
        *renames(THEIRS, BLOCK, (*dense.BEHIND, *ROTARY_MATRICES, ("attn_sinks", "attention.branch.sinks"))),
        *parts.head_rules(spec),
        *mixtures.expert_rules(spec, ("weight", "bias")),
    )


# ERNIE 4.5 and MiniMax-M2


def _ernie_facts(spec: Decoder.Spec) -> Facts:
    mixing, shared = _mixing(spec), _mixture_of(spec).shared
    if mixing != list(range(mixing[0], len(spec.stack.blocks))):
        raise _unsaid("wants experts in every layer behind the dense ones in front")
    facts = {**parts.rotary_facts(spec), **_facts_of_experts(spec), "interleave_moe_layer_step": 1}
    return {**facts, "expert_shared_feed_forward_length": shared[0].hidden} if shared else facts


def _ernie_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # That a weight is divided by no less than a least sum is known to nobody but the model's makers.
    _check_scores(facts, SOFTMAX)
    parts.pass_over(facts, "expert_shared_count", "expert_weights_norm", "expert_weights_scale")
    small = facts["expert_feed_forward_length"]
    return {
        **parts.rotary_config(facts, tensors),
        "head_dim": facts["attention.key_length"],
        "use_bias": "blk.0.attn_q.bias" in tensors,
        "moe_num_experts": facts["expert_count"],
        "moe_k": facts["expert_used_count"],
        "moe_intermediate_size": small,
        "moe_num_shared_experts": facts.get("expert_shared_feed_forward_length", 0) // small,
        "moe_layer_start_index": facts.get("leading_dense_block_count", 0),
        "moe_layer_interval": facts.get("interleave_moe_layer_step", 1) or 1,
    }


def _minimax_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    _check_scores(facts, SIGMOID)
    parts.pass_over(facts, "expert_weights_norm", "expert_weights_scale")
    return {
        **parts.rotary_config(facts, tensors),
        **mixtures.expert_config(facts, "num_local_experts"),
        "head_dim": facts["attention.key_length"],
        "intermediate_size": facts["expert_feed_forward_length"],
        "rotary_dim": facts["rope.dimension_count"],
        "tie_word_embeddings": False,  # the reader wants a head
    }


def _minimax_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.rotary_facts(spec), **_facts_of_experts(spec)}


# DeepSeek-V2 and V3, whose cache llama.cpp takes for that of one head as wide as the latent


_PLAIN_QUERIES = (26, 27)
"""Layers by which the reader knows a model whose queries have no latent."""


def _v2_facts(spec: Decoder.Spec) -> Facts:
    if getattr(_mixture_of(spec).router.choice, "groups", 1) > 1:
        raise _unsaid("judges a group of experts by its two best, and DeepSeek-V2 by its best")
    return _deepseek_facts(spec)


def _deepseek_facts(spec: Decoder.Spec) -> Facts:
    attention, rotary = parts.branch_of(spec, "attention"), spec.stack.positions["rotary"]
    turned, latent = attention.widths.rotated, attention.latent
    query = getattr(attention.query, "parts", None)
    if not query and len(spec.stack.blocks) not in _PLAIN_QUERIES:
        raise _unsaid("takes queries without a latent in models of 26 or 27 layers alone")
    return {
        **parts.sizes(spec, "layer_norm_rms_epsilon"),
        "attention.head_count_kv": 1,
        **({"attention.q_lora_rank": query[0].width} if query else {}),
        "attention.kv_lora_rank": latent,
        "attention.key_length": latent + turned,
        "attention.value_length": latent,
        "attention.key_length_mla": attention.widths.plain + turned,
        "attention.value_length_mla": attention.widths.value,
        "rope.dimension_count": turned,
        "rope.freq_base": rotary.base,  # type: ignore[attr-defined]  # they rotate
        **_latent_scaling(spec),
        **_facts_of_experts(spec),
        **_facts_of_weighing(spec),
    }


def _latent_scaling(spec: Decoder.Spec) -> Facts:
    """Return how the rates are scaled; what YaRN multiplies all scores with is said by the logarithm's factor."""
    attention: Any = parts.branch_of(spec, "attention")
    scaling = spec.stack.positions["rotary"].scaling  # type: ignore[attr-defined]  # they rotate
    facts = parts.scaling_facts(scaling)
    if not isinstance(scaling, Yarn):
        return facts
    temperature = math.sqrt(attention.scoring.scale * math.sqrt(attention.widths.plain + attention.widths.rotated))
    return {**facts, "rope.scaling.yarn_log_multiplier": round((temperature - 1) / math.log(scaling.factor), 6)}


def _deepseek_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    parts.pass_over(facts, "attention.head_count_kv", "expert_shared_feed_forward_length")
    _check_scores(facts, SOFTMAX, SIGMOID)
    turned = facts["rope.dimension_count"]
    # Older files give the widths of a head where newer ones give those of the latent that is cached.
    widths = [facts.get(f"attention.{x}_length_mla", facts[f"attention.{x}_length"]) for x in ("key", "value")]
    scaling = parts.scaling_config(facts)
    if scaling is not None and scaling["rope_type"] == "yarn":
        weight = round(10 * facts.get("rope.scaling.yarn_log_multiplier", 0.0), 5)
        scaling |= {"mscale": weight, "mscale_all_dim": weight} if weight else {"mscale": 1.0, "mscale_all_dim": 0.0}
    return {
        **parts.sizes_config(facts),
        **_experts_config(facts),
        "max_position_embeddings": facts["context_length"],
        "rms_norm_eps": facts["attention.layer_norm_rms_epsilon"],
        "rope_theta": facts.get("rope.freq_base", 10_000.0),
        "rope_scaling": scaling,
        "tie_word_embeddings": "output.weight" not in tensors,
        "q_lora_rank": facts.get("attention.q_lora_rank") or None,
        "kv_lora_rank": facts["attention.kv_lora_rank"],
        "qk_nope_head_dim": widths[0] - turned,
        "qk_rope_head_dim": turned,
        "v_head_dim": widths[1],
    }


def _deepseek_v2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    config = _deepseek_config(facts, tensors)
    if config["norm_topk_prob"]:
        raise ModelFileError("expert_weights_norm: DeepSeek-V2 weighs by the scores themselves", dense.HINT)
    return {**config, "topk_method": "group_limited_greedy" if config["n_group"] > 1 else "greedy"}


def _deepseek_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    attention, ours = parts.branch_of(spec, "attention"), f"{BLOCK}.attention.branch"
    down = {"attn_q_a": "query.0.linear", "attn_q_a_norm": "query.1", "attn_kv_a_norm": "norm"}
    query = "attn_q_b" if hasattr(attention.query, "parts") else "attn_q"
    matrices = [pair for pair in ROTARY_MATRICES if pair[0] != "attn_v"]
    return (
        *OUTER,
        *renames(THEIRS, BLOCK, (*NORMS, *matrices)),
        *renames(THEIRS, ours, (*down.items(), (query, "q"))),
        fused(f"{THEIRS}.attn_kv_a_mqa.weight", (f"{ours}.latent.weight", f"{ours}.rotated.weight")),
        Rule(f"{THEIRS}.attn_k_b.weight", (f"{ours}.k.weight",), GroupTransposed(attention.heads)),
        Rule(f"{THEIRS}.attn_v_b.weight", (f"{ours}.v.weight",), Grouped(attention.heads)),
        *mixtures.expert_rules(spec),
    )


def _latent_in_one(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rule of files from before April 2025, in which one matrix makes keys and values of a latent."""
    ours, heads = f"{BLOCK}.attention.branch", parts.branch_of(spec, "attention").heads
    return (Rule(f"{THEIRS}.attn_kv_b.weight", (f"{ours}.k.weight", f"{ours}.v.weight"), GroupInterleaved(heads)),)


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "deepseek_v3": _Row(
        "deepseek2", _deepseek_facts, _deepseek_config, _deepseek_rules, False,
        told_by="expert_gating_func", told_as=SIGMOID, older=_latent_in_one,
    ),
    "deepseek_v2": _Row(
        "deepseek2", _v2_facts, _deepseek_v2_config, _deepseek_rules, False, older=_latent_in_one
    ),
    "ernie4_5_moe": _Row("ernie4_5-moe", _ernie_facts, _ernie_config, mixtures.rules),
    "glm4_moe": _Row("glm4moe", _glm_facts, _glm_config, partial(mixtures.rules, before=dense.BEHIND), partial=True),
    "gpt_oss": _Row("gpt-oss", _gpt_oss_facts, _gpt_oss_config, _gpt_oss_rules),
    "minimax_m2": _Row("minimax-m2", _minimax_facts, _minimax_config, mixtures.rules, partial=True),
}  # fmt: skip
"""By ``model_type``."""
