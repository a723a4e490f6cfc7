"""What the architectures of GGUF files share: the facts of a spec, the keys made of them, and the names of tensors."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.checkpoints.layouts import ROWS, Layout, Stacked
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.models.decoder import Decoder
from orrery.nn.positions.rotary import Linear, Scaling, Yarn

Facts = dict[str, Any]
Config = dict[str, Any]


_NUMBER = re.compile(r"\{[a-z]\}")


@dataclass(frozen=True)
class GgufArchitecture:
    """One architecture of llama.cpp.

    Attributes:
        name: llama.cpp's.
        facts: from a spec, without the name in front; None where files are read and not written.
        config: what a reader makes of the facts and of the names of the tensors: a ``config.json``.
        rules: from llama.cpp's tensors to ours.
        rotary: whether it rotates queries and keys, so that the widths of heads are settled.
        partial: whether a part of each head may be rotated alone.
        listed: the facts that may be one for each layer.
        told_by: a fact or a tensor by which the file tells this family from another of the same architecture.
        told_as: the value of that fact; without one, any that is neither zero nor false.
        older: for reading alone, rules that go before the others where a file has their tensors: it may be an old one.
    """

    name: str
    facts: Callable[[Decoder.Spec], Facts] | None
    config: Callable[[Mapping[str, Any], Collection[str]], Config]
    rules: Callable[[Decoder.Spec], tuple[Rule, ...]]
    rotary: bool = True
    partial: bool = False
    listed: frozenset[str] = frozenset()
    told_by: str | None = None
    told_as: int | None = None
    older: Callable[[Decoder.Spec], tuple[Rule, ...]] = lambda spec: ()

    def rules_of(self, spec: Any, tensors: Collection[str]) -> tuple[Rule, ...]:
        """Return the rules for a file with these tensors, which may have been written long ago."""
        older = [rule for rule in self.older(spec) if _NUMBER.sub("0", rule.theirs) in tensors]
        replaced = {name for rule in older for name in rule.ours}
        return _in_pairs((*older, *(rule for rule in self.rules(spec) if not replaced & set(rule.ours))), tensors)

    def is_told(self, facts: Mapping[str, Any], tensors: Collection[str]) -> bool:
        """Say whether a file with these facts, by full key, and tensors is of this family among its architecture's."""
        value = facts.get(f"{self.name}.{self.told_by}") if self.told_by else None
        if self.told_as is None:
            return bool(value) or (self.told_by is not None and self.told_by in tensors)
        return value == self.told_as


def _in_pairs(rules: tuple[Rule, ...], tensors: Collection[str]) -> tuple[Rule, ...]:
    """Return the rules of a file that may hold gate and up of all experts as one tensor, each gate above its up."""
    ours = {rule.theirs: rule.ours for rule in rules}
    for end in ("weight", "bias"):
        gate, up, pair = (f"{THEIRS}.ffn_{part}_exps.{end}" for part in ("gate", "up", "gate_up"))
        if {gate, up} <= ours.keys() and any(name.endswith(f".ffn_gate_up_exps.{end}") for name in tensors):
            both = tuple(name for one in zip(ours[gate], ours[up], strict=True) for name in one)
            others = (rule for rule in rules if rule.theirs not in (gate, up))
            rules = (Rule(pair, both, Stacked(across=2)), *others)
    return rules


_MOST_LAYERS = 10_000
HINT = "take the Hugging Face folder of the same model"
TRAINED, TEMPERATURE = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
"""The facts for the length that a model was trained with, and for what multiplies cosine and sine."""
RMS_EPSILON, EPSILON = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
"""The facts of norms, of which files may have both; that which an architecture does not read changes nothing."""
PATTERN = "attention.sliding_window_pattern"
"""The fact that says which layers have windows: one for each, or every which one has none."""
POOLING = "pooling_type"
"""The fact that says how a vector of a text is made."""
BLOCK, THEIRS = "stack.blocks.{i}", "blk.{i}"
"""What the names of a layer begin with, ours and theirs."""
OUTER = (
    rename("token_embd.weight", "embed.token.weight"),
    *(rename(f"output_norm.{p}", f"stack.final.{p}") for p in ("weight", "bias")),
    *(rename(f"output.{p}", f"head.vocabulary.{p}") for p in ("weight", "bias")),
)
NORMS = (("attn_norm", "attention.pre"), ("ffn_norm", "feed_forward.pre"))
MATRICES = (
    ("attn_output", "attention.branch.out"),
    ("ffn_up", "feed_forward.branch.up"),
    ("ffn_down", "feed_forward.branch.down"),
)
ROTARY_MATRICES = (*MATRICES, ("ffn_gate", "feed_forward.branch.gate"), ("attn_v", "attention.branch.v"))


def branches_of(spec: Decoder.Spec, role: str) -> Iterator[Any]:
    """Yield the branches of this role, block by block."""
    for block in spec.stack.blocks:
        for name, residual in block.residuals.items():
            if name == role:
                yield residual.branch
            elif role in (branches := getattr(residual.branch, "branches", {})):
                yield branches[role]


def branch_of(spec: Decoder.Spec, role: str) -> Any:
    """Return a branch of the first block that has it; that others are like it shows when the facts are read back."""
    return next(branches_of(spec, role), None)


def sizes(spec: Decoder.Spec, epsilon: str) -> Facts:
    """Return the facts of every architecture; ``epsilon`` names that of its norms."""
    final: Any = spec.stack.final
    return {
        "vocab_size": spec.embed.vocabulary,
        "context_length": spec.context,
        "embedding_length": spec.width,
        "block_count": len(spec.stack.blocks),
        "feed_forward_length": getattr(branch_of(spec, "feed_forward"), "hidden", 0),
        "attention.head_count": getattr(branch_of(spec, "attention"), "heads", 0),
        f"attention.{epsilon}": final.eps,
    }


def layer_norm_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model with layer norms, and without rotations."""
    return sizes(spec, "layer_norm_epsilon")


def rotary_facts(spec: Decoder.Spec, epsilon: str = "layer_norm_rms_epsilon", positions: str = "rotary") -> Facts:
    """Return the facts of a model that rotates queries and keys, by the positions of this name."""
    attention = branch_of(spec, "attention")
    rotary: Any = spec.stack.positions[positions]
    return {
        **sizes(spec, epsilon),
        "attention.head_count_kv": attention.kv_heads,
        "attention.key_length": attention.head_width,
        "attention.value_length": attention.head_width,
        "rope.dimension_count": rotary.width,
        "rope.freq_base": rotary.base,
        **scaling_facts(rotary.scaling),
    }


def scaling_facts(scaling: Scaling | None) -> Facts:
    """Return how the rates are scaled; a kind that has no facts is found missing in the configuration read back."""
    match scaling:
        case Linear():
            return {"rope.scaling.type": "linear", "rope.scaling.factor": scaling.factor}
        case Yarn():
            facts = {"rope.scaling.type": "yarn", "rope.scaling.factor": scaling.factor}
            ramp = {"fast": (scaling.fast, 32.0), "slow": (scaling.slow, 1.0)}
            return {
                **facts,
                TRAINED: scaling.trained,
                **{f"rope.scaling.yarn_beta_{end}": own for end, (own, usual) in ramp.items() if own != usual},
            }
    return {}


def scaling_config(facts: Mapping[str, Any]) -> Config | None:
    """Return the key ``rope_scaling``; factors of pairs are tensors, of which this knows nothing.

    A factor without a kind is linear; the oldest files call it ``rope.scale_linear``.

    Raises:
        ModelFileError: YaRN's rule is another than its paper's, or a factor stands beside those of pairs.
    """
    kind, trained = facts.get("rope.scaling.type", "linear"), facts.get(TRAINED)
    older = facts.get("rope.scale_linear", 1.0)
    factor = facts.get("rope.scaling.factor", older) or 1.0
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return None
    if kind == "longrope":
        if factor != 1.0:
            raise ModelFileError(f"rope.scaling.factor = {factor} of a longrope is not built", HINT)
        return None
    scaling = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        ramp = {f"beta_{end}": facts.get(f"rope.scaling.yarn_beta_{end}") for end in ("fast", "slow")}
        scaling |= {key: turns for key, turns in ramp.items() if turns is not None}
        scaling |= _temperature(facts)
    return scaling if trained is None else {**scaling, "original_max_position_embeddings": trained}


def _temperature(facts: Mapping[str, Any]) -> Config:
    """Return what multiplies cosine and sine under YaRN, where a file says it: the fact is a factor on the paper's."""
    mixed, factor = facts.get("rope.scaling.yarn_ext_factor", 1.0), facts.get(TEMPERATURE, 1.0)
    if mixed not in (1.0, -1.0):  # below zero is not said
        raise ModelFileError(f"rope.scaling.yarn_ext_factor = {mixed} is not built", HINT)
    if factor == 1.0:
        return {}
    if facts.get("rope.scaling.yarn_log_multiplier"):
        raise ModelFileError(f"{TEMPERATURE} = {factor} beside a yarn_log_multiplier is not built", HINT)
    return {"attention_factor": factor * (0.1 * math.log(max(facts["rope.scaling.factor"], 1.0)) + 1.0)}


def sizes_config(facts: Mapping[str, Any]) -> Config:
    """Return the sizes under the names that nearly all configurations have."""
    return {
        "vocab_size": facts["vocab_size"],
        "hidden_size": facts["embedding_length"],
        "intermediate_size": facts["feed_forward_length"],
        "num_hidden_layers": facts["block_count"],
        "num_attention_heads": facts["attention.head_count"],
    }


def gpt2_config(facts: Mapping[str, Any]) -> Config:
    """Return the keys that GPT-2 and its descendants share."""
    return {
        "vocab_size": facts["vocab_size"],
        "n_positions": facts["context_length"],
        "n_embd": facts["embedding_length"],
        "n_layer": facts["block_count"],
        "n_inner": facts["feed_forward_length"],
        "n_head": facts["attention.head_count"],
        "layer_norm_epsilon": facts["attention.layer_norm_epsilon"],
    }


def rotary_config(facts: Mapping[str, Any], tensors: Collection[str], epsilon: str = "rms_norm_eps") -> Config:
    """Return the keys that Llama and its descendants share; ``epsilon`` is the key of that of the norms."""
    own, other = RMS_EPSILON, EPSILON
    if epsilon != "rms_norm_eps":
        own, other = other, own
    return {
        **sizes_config(facts),
        "num_key_value_heads": facts["attention.head_count_kv"],
        "max_position_embeddings": facts["context_length"],
        epsilon: facts[other if own not in facts and other in facts else own],
        "rope_theta": facts["rope.freq_base"],
        "rope_scaling": scaling_config(facts),
        "tie_word_embeddings": "output.weight" not in tensors,
    }


def pass_over(facts: Mapping[str, Any], *keys: str) -> None:
    """Ask for facts of which nothing is made here, so that they are not refused as unknown."""
    for key in keys:
        facts.get(key)


def rotated_share(facts: Mapping[str, Any]) -> float:
    """Return the key ``partial_rotary_factor``: which part of a head turns."""
    return float(facts["rope.dimension_count"] / facts["attention.key_length"])


def window_facts(spec: Decoder.Spec) -> Facts:
    """Return how far the layers look back that do not see everything."""
    windows = [mask.window for mask in spec.stack.masks.values() if mask.window is not None]
    return {"attention.sliding_window": windows[0]} if windows else {}


def pattern_facts(spec: Decoder.Spec) -> Facts:
    """Return how far layers look back that do not see everything, and which layers these are."""
    slides = [spec.stack.masks[branch.mask].window is not None for branch in branches_of(spec, "attention")]
    return {**window_facts(spec), PATTERN: slides} if any(slides) else {}


def layer_kinds(facts: Mapping[str, Any]) -> Config:
    """Return the key ``layer_types`` where a file says which layers have windows; else the architecture knows it.

    Raises:
        ModelFileError: there are no layers, or more than any model has.
    """
    if PATTERN not in facts:
        return {}
    pattern = facts[PATTERN]
    slides = for_each_layer(facts, PATTERN)
    if not isinstance(pattern, list):
        slides = [bool(pattern) and bool((layer + 1) % pattern) for layer in range(len(slides))]
    return {"layer_types": ["sliding_attention" if slide else "full_attention" for slide in slides]}


def for_each_layer(facts: Mapping[str, Any], key: str) -> list[Any]:
    """Return a fact that may be one for each layer, as one for each.

    Raises:
        ModelFileError: there are no layers, or more than any model has.
    """
    value, layers = facts[key], facts["block_count"]
    if not 1 <= layers <= _MOST_LAYERS:
        raise ModelFileError(f"block_count = {layers} is no number of layers", "get the file again")
    return list(value) if isinstance(value, list) else [value] * layers


def head_rules(
    spec: Decoder.Spec, layout: Callable[[int], Layout] = lambda heads: ROWS, ours: str = f"{BLOCK}.attention.branch"
) -> tuple[Rule, ...]:
    """Return the rules of q and k, whose layout may depend on their heads."""
    attention = branch_of(spec, "attention")
    return tuple(
        Rule(f"{THEIRS}.attn_{x}.{p}", (f"{ours}.{x}.{p}",), layout(heads))
        for x, heads in (("q", attention.heads), ("k", attention.kv_heads))
        for p in ("weight", "bias")
    )
