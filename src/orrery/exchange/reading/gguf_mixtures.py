"""Decoders with experts in GGUF files: all experts of a layer are one tensor for each of their matrices.

Whether the weights of the chosen are made to sum to one is no fact of a file: its reader knows it by the architecture.
Source: https://github.com/ggml-org/llama.cpp, ``src/llama-model.cpp``; measured against llama.cpp itself.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import Stacked
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.exchange.reading import gguf_dense as dense
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import BLOCK, NORMS, THEIRS, Config, Facts
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.residual import Gated
from orrery.nn.spec import traverse

_NETWORK = f"{BLOCK}.feed_forward.branch"
_PARTS = ("gate", "up", "down")


def mixture_of(spec: Decoder.Spec) -> MoE.Spec | None:
    """Return the first mixture of a model."""
    return next((part for _, part in traverse(spec.stack.blocks) if isinstance(part, MoE.Spec)), None)


def expert_rules(spec: Decoder.Spec, ends: tuple[str, ...] = ("weight",)) -> tuple[Rule, ...]:
    """Return the rules of mixtures: the router, and each matrix of all experts."""
    mixture = mixture_of(spec)
    experts = range(mixture.router.experts if mixture else 0)

    def stacked(part: str, end: str) -> Rule:
        each = tuple(f"{_NETWORK}.experts.{x}.{part}.{end}" for x in experts)
        return Rule(f"{THEIRS}.ffn_{part}_exps.{end}", each, Stacked())

    return (
        *renames(THEIRS, BLOCK, [("ffn_gate_inp", "feed_forward.branch.router.linear")]),
        rename(f"{THEIRS}.exp_probs_b.bias", f"{_NETWORK}.router.correction"),
        *(stacked(part, end) for part in _PARTS for end in ends if experts),
        *(_shared_rules(*mixture.shared[:1]) if mixture else ()),
    )


def _shared_rules(network: Any = None) -> tuple[Rule, ...]:
    """Return the rules of the network that every token passes, behind a gate or not."""
    if network is None:
        return ()
    gated = isinstance(network, Gated.Spec)
    ours = "feed_forward.branch.shared.0" + (".branch" if gated else "")
    matrices = renames(THEIRS, BLOCK, ((f"ffn_{part}_shexp", f"{ours}.{part}") for part in _PARTS))
    gate = rename(f"{THEIRS}.ffn_gate_inp_shexp.weight", f"{_NETWORK}.shared.0.gate.weight")
    return (*matrices, gate) if gated else matrices


def rules(spec: Decoder.Spec, before: tuple[tuple[str, str], ...] = NORMS) -> tuple[Rule, ...]:
    """Return the rules of a decoder with mixtures whose rows stay as they are; ``before`` are its branches' norms."""
    return (*dense.plain_rules(spec, before), *expert_rules(spec))


def _neighbours(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*dense.llama_rules(spec), *expert_rules(spec))


def _facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model whose layers all have experts as wide as the file's one width says."""
    return {**parts.rotary_facts(spec), **expert_facts(spec)}


def expert_facts(spec: Decoder.Spec) -> Facts:
    """Return how many experts there are, how many a token meets, and how wide they are where nothing else says it."""
    mixture: Any = mixture_of(spec)
    facts = {"expert_count": mixture.router.experts, "expert_used_count": mixture.router.choice.chosen}
    return {**facts, "feed_forward_length": mixture.expert.hidden}


def expert_config(facts: Mapping[str, Any], count: str = "num_experts") -> Config:
    """Return the keys of a mixture; ``count`` is that of the number of experts."""
    return {count: facts["expert_count"], "num_experts_per_tok": facts["expert_used_count"]}


def _mixtral_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    config = {**parts.rotary_config(facts, tensors), **expert_config(facts, "num_local_experts")}
    return {**config, "head_dim": facts["attention.key_length"], "sliding_window": None}


def _olmoe_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    whole = dense.whole_config(facts, tensors)
    return {**whole, **expert_config(facts), "norm_topk_prob": False}


def _granitemoe_facts(spec: Decoder.Spec) -> Facts:
    return {**dense.granite_facts(spec), **expert_facts(spec)}


def _granitemoe_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    config = {**dense.granite_config(facts, tensors), **expert_config(facts, "num_local_experts")}
    return {key: value for key, value in config.items() if key != "mlp_bias"}


def _qwen_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model that tells the width of an expert from that of a dense network."""
    mixture: Any = mixture_of(spec)
    shared = [getattr(one, "branch", one).hidden for one in mixture.shared]
    return {
        **parts.rotary_facts(spec),
        **expert_facts(spec),
        "feed_forward_length": mixture.expert.hidden,
        "expert_feed_forward_length": mixture.expert.hidden,
        **({"expert_shared_feed_forward_length": shared[0]} if shared else {}),
    }


def _qwen3_moe_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **dense.whole_config(facts, tensors),
        **expert_config(facts),
        "moe_intermediate_size": facts.get("expert_feed_forward_length", facts["feed_forward_length"]),
        "norm_topk_prob": True,
        "use_sliding_window": False,
    }


def _qwen2_moe_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    small = facts.get("expert_feed_forward_length") or facts["feed_forward_length"] // facts["expert_used_count"]
    return {
        **parts.rotary_config(facts, tensors),
        **expert_config(facts),
        "moe_intermediate_size": small,
        "shared_expert_intermediate_size": facts.get("expert_shared_feed_forward_length", facts["feed_forward_length"]),
        "qkv_bias": "blk.0.attn_q.bias" in tensors,
        "norm_topk_prob": False,
        "use_sliding_window": False,
    }


def _one_by_one(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rules of files from before April 2024, in which each expert has tensors of its own."""
    mixture = mixture_of(spec)
    return tuple(
        rename(f"{THEIRS}.ffn_{part}.{x}.weight", f"{_NETWORK}.experts.{x}.{part}.weight")
        for x in range(mixture.router.experts if mixture else 0)
        for part in _PARTS
    )


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "granitemoe": _Row("granitemoe", _granitemoe_facts, _granitemoe_config, _neighbours),
    "mixtral": _Row("llama", _facts, _mixtral_config, _neighbours, told_by="expert_count", older=_one_by_one),
    "olmoe": _Row("olmoe", _facts, _olmoe_config, rules),
    "qwen2_moe": _Row("qwen2moe", _qwen_facts, _qwen2_moe_config, rules),
    "qwen3_moe": _Row("qwen3moe", _qwen_facts, _qwen3_moe_config, rules),
}
"""By ``model_type``."""
