"""Further dense decoders of GGUF files, most of them nearly Llama: what is peculiar to each.

Two conventions differ from file to file: whether the pairs of a rotation lie as neighbours in a head (llama.cpp's
``NORM``) or half a head apart (``NEOX``), and with the first whether the converter has put the rows in that order.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; that nothing of
it is misread is measured against llama.cpp itself.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from orrery.checkpoints.layouts import RotaryInterleaved, Shifted
from orrery.checkpoints.rules import Rule, fused, renames
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_learned import xielu_rules
from orrery.exchange.reading.gguf_parts import BLOCK, NORMS, OUTER, ROTARY_MATRICES, THEIRS, Config, Facts
from orrery.models.decoder import Decoder
from orrery.nn.positions.longrope import LongRope

HINT = parts.HINT
POST_NORMS = (("post_attention_norm", "attention.post"), ("post_ffw_norm", "feed_forward.post"))
QK_NORMS = tuple((f"attn_{x}_norm", f"attention.branch.{x}_norm") for x in "qk")
HEAD_NORMS = tuple((theirs, f"{ours}.norm") for theirs, ours in QK_NORMS)
BEHIND = (("attn_norm", "attention.pre"), ("post_attention_norm", "feed_forward.pre"))
"""The norms of a file that names the one before the network after the attention before it."""
_PARALLEL = tuple((theirs, f"parallel.branch.{ours.replace('.branch', '')}") for theirs, ours in ROTARY_MATRICES)
"""The matrices of a block whose branches stand side by side."""


def llama_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rules of a pre-norm decoder whose rows the converter turns into neighbours."""
    return (*OUTER, *renames(THEIRS, BLOCK, (*NORMS, *ROTARY_MATRICES)), *parts.head_rules(spec, RotaryInterleaved))


def plain_rules(spec: Decoder.Spec, before: tuple[tuple[str, str], ...] = NORMS) -> tuple[Rule, ...]:
    """Return those of one whose rows stay as they are, with norms behind branches and of heads where it has them."""
    norms = (*before, *POST_NORMS, *QK_NORMS, *HEAD_NORMS)
    return (*OUTER, *renames(THEIRS, BLOCK, (*norms, *ROTARY_MATRICES)), *parts.head_rules(spec))


def _biased(tensors: Collection[str]) -> Config:
    """Return the keys of biases, which files say by having them."""
    return {"attention_bias": "blk.0.attn_q.bias" in tensors, "mlp_bias": "blk.0.ffn_up.bias" in tensors}


def whole_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of a family like Llama that may have biases."""
    return {
        **parts.rotary_config(facts, tensors),
        "head_dim": facts["attention.key_length"],
        "attention_bias": "blk.0.attn_q.bias" in tensors,
    }


def llama_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of Llama, with the biases that a file has."""
    return {**whole_config(facts, tensors), **_biased(tensors)}


def _smollm3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader leaves out the rotation of every fourth layer, and takes no biases of q and k, whatever the file says.
    config = {**parts.rotary_config(facts, tensors), "head_dim": facts["attention.key_length"]}
    return {**config, "no_rope_layer_interval": 4, "use_sliding_window": False}


def _olmo3_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.rotary_facts(spec, positions="causal"), **parts.pattern_facts(spec)}


def _olmo3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # Every fourth layer sees everything; a window has the same base, and its rates are never rescaled.
    same = {"rope_type": "default", "rope_theta": facts["rope.freq_base"]}
    config = {**whole_config(facts, tensors), "sliding_window": facts["attention.sliding_window"]}
    config |= parts.layer_kinds(facts)
    return {**config, "rope_parameters": {"full_attention": {}, "sliding_attention": same}}


def _seed_oss_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    out = "blk.0.attn_output.bias" in tensors
    quiet = {"attention_dropout": 0.0, "residual_dropout": 0.0}
    return {**whole_config(facts, tensors), **_biased(tensors), "attention_out_bias": out, **quiet}


def _glm4_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    norms, ours = (*NORMS, *POST_NORMS), f"{BLOCK}.feed_forward.branch"
    matrices = [pair for pair in ROTARY_MATRICES if pair[0] not in ("ffn_up", "ffn_gate")]
    return (
        *OUTER,
        *renames(THEIRS, BLOCK, (*norms, *matrices)),
        fused(f"{THEIRS}.ffn_up.weight", (f"{ours}.gate.weight", f"{ours}.up.weight")),
        *parts.head_rules(spec),
    )


def _glm4_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**whole_config(facts, tensors), "partial_rotary_factor": parts.rotated_share(facts)}


def granite_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a Granite."""
    head, enter, residual = (getattr(x, "factor", 1.0) for x in (_cap(spec), spec.stack.enter, _post(spec)))
    return {
        **parts.rotary_facts(spec),
        "attention.scale": parts.branch_of(spec, "attention").scoring.scale,
        "embedding_scale": enter,
        "residual_scale": residual,
        "logit_scale": 1.0 / head,
    }


def _cap(spec: Decoder.Spec) -> Any:
    return getattr(spec.head, "cap", None)


def _post(spec: Decoder.Spec) -> Any:
    return next(iter(spec.stack.blocks[0].residuals.values())).post


def granite_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of a Granite, with its four multipliers; a reader takes the logits' as a divisor."""
    return {
        **llama_config(facts, tensors),
        "attention_multiplier": facts["attention.scale"],
        "embedding_multiplier": facts["embedding_scale"],
        "residual_multiplier": facts["residual_scale"],
        "logits_scaling": facts["logit_scale"],
    }


def _exaone4_facts(spec: Decoder.Spec) -> Facts:
    return {**parts.rotary_facts(spec), **parts.pattern_facts(spec)}


def _exaone4_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader knows the 32B model by its 64 layers; it alone has windows, of which the fact may say the length.
    window = facts.get("attention.sliding_window", 4096)
    slides = facts["block_count"] == 64
    config = {**whole_config(facts, tensors), "sliding_window": window if slides else None}
    kinds = parts.layer_kinds(facts)
    config |= kinds if slides else {}
    return {key: value for key, value in config.items() if key != "attention_bias"}


def cohere_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of Command R and its successor."""
    return {
        **parts.rotary_facts(spec, "layer_norm_epsilon"),
        "logit_scale": getattr(_cap(spec), "factor", 1.0),
        **parts.pattern_facts(spec),
    }


def cohere_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rules of a block whose branches stand side by side behind one norm."""
    norm = (("attn_norm", "parallel.pre"),)
    ours = f"{BLOCK}.parallel.branch.attention"
    return (*OUTER, *renames(THEIRS, BLOCK, (*norm, *_PARALLEL)), *parts.head_rules(spec, ours=ours))


def cohere_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    """Return the keys of Command R and its successor."""
    return {
        **parts.rotary_config(facts, tensors, "layer_norm_eps"),
        "head_dim": facts["attention.key_length"],
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "logit_scale": facts["logit_scale"],
    }


def _cohere2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **cohere_config(facts, tensors),
        "sliding_window": facts.get("attention.sliding_window", 4096),
        **parts.layer_kinds(facts),
    }


def _phi3_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    attention, network = f"{BLOCK}.attention.branch", f"{BLOCK}.feed_forward.branch"
    return (
        *OUTER,
        *renames(
            THEIRS, BLOCK, (*NORMS, ("attn_output", "attention.branch.out"), ("ffn_down", "feed_forward.branch.down"))
        ),
        fused(f"{THEIRS}.attn_qkv.weight", tuple(f"{attention}.{x}.weight" for x in "qkv")),
        fused(f"{THEIRS}.ffn_up.weight", (f"{network}.gate.weight", f"{network}.up.weight")),
    )


def _long_facts(spec: Decoder.Spec) -> Facts:
    """Return the length that a model was trained with, and LongRoPE's temperature; its factors are tensors."""
    scaling: Any = spec.stack.positions["rotary"].scaling  # type: ignore[attr-defined]  # they rotate
    if not isinstance(scaling, LongRope):
        return {parts.TRAINED: spec.context}
    return {parts.TRAINED: scaling.trained, parts.TEMPERATURE: scaling.temperature}


def _phi3_facts(spec: Decoder.Spec) -> Facts:
    return {
        **parts.rotary_facts(spec),
        **_long_facts(spec),
        **parts.window_facts(spec),
    }


def _phi3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **parts.rotary_config(facts, tensors),
        "original_max_position_embeddings": facts.get(parts.TRAINED, facts["context_length"]),
        "partial_rotary_factor": parts.rotated_share(facts),
        "sliding_window": facts.get("attention.sliding_window") or None,
    }


def _phi_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    ours = f"{BLOCK}.parallel.branch.attention"
    return (
        *OUTER,
        *renames(THEIRS, BLOCK, (("attn_norm", "parallel.pre"), *(pair for pair in _PARALLEL if pair[0] != "attn_v"))),
        *(fused(f"{THEIRS}.attn_qkv.{end}", tuple(f"{ours}.{x}.{end}" for x in "qkv")) for end in ("weight", "bias")),
    )


def _phi_facts(spec: Decoder.Spec) -> Facts:
    return parts.rotary_facts(spec, "layer_norm_epsilon")


def _phi_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **parts.rotary_config(facts, tensors, "layer_norm_eps"),
        "partial_rotary_factor": parts.rotated_share(facts),
        "hidden_act": "gelu_new",
    }


def _nemotron_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    """Return the rules; the file holds the whole gain of a norm."""
    norms = (*((f"{THEIRS}.{theirs}", f"{BLOCK}.{ours}") for theirs, ours in NORMS), ("output_norm", "stack.final"))
    return (
        *(rule for rule in OUTER if rule.theirs != "output_norm.weight"),
        *(Rule(f"{theirs}.weight", (f"{ours}.weight",), Shifted(1.0)) for theirs, ours in norms),
        *renames(THEIRS, BLOCK, NORMS, ("bias",)),
        *renames(THEIRS, BLOCK, ROTARY_MATRICES),
        *parts.head_rules(spec),
    )


def _nemotron_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **parts.rotary_config(facts, tensors, "norm_eps"),
        **_biased(tensors),
        "head_dim": facts["attention.key_length"],
        "partial_rotary_factor": parts.rotated_share(facts),
    }


def _starcoder2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**parts.rotary_config(facts, tensors, "norm_epsilon"), "use_bias": "blk.0.attn_q.bias" in tensors}


def _ernie_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    config = {**parts.rotary_config(facts, tensors), "head_dim": facts["attention.key_length"]}
    return {**config, "use_bias": "blk.0.attn_q.bias" in tensors}


def _ministral_facts(spec: Decoder.Spec) -> Facts:
    """Return the facts of a model whose queries grow; a logarithm's factor says by what YaRN multiplies them."""
    tempered: Any = spec.stack.positions["rotary"]
    scaling = tempered.rotary.scaling
    plain = replace(spec, stack=replace(spec.stack, positions={"rotary": tempered.rotary}))
    growth = {parts.TRAINED: tempered.trained, "attention.temperature_scale": tempered.beta}
    facts = {**parts.rotary_facts(plain), **growth}
    if getattr(scaling, "temperature", None) is None or scaling.factor <= 1:
        return facts
    usual = 0.1 * math.log(scaling.factor)
    return {**facts, "rope.scaling.yarn_log_multiplier": round(((1 + usual) / scaling.temperature - 1) / usual, 6)}


def _ministral_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    config = {**parts.rotary_config(facts, tensors), "head_dim": facts["attention.key_length"]}
    scaling = config.pop("rope_scaling") or {"rope_type": "default"}
    weight = facts.get("rope.scaling.yarn_log_multiplier", 0.0) if scaling["rope_type"] == "yarn" else 0.0
    return {
        **config,
        "sliding_window": None,
        "rope_parameters": {
            **scaling,
            "original_max_position_embeddings": facts.get(parts.TRAINED, facts["context_length"]),
            **({"mscale": 1.0, "mscale_all_dim": weight} if weight else {}),
            "rope_theta": config["rope_theta"],
            "llama_4_scaling_beta": facts.get("attention.temperature_scale", 0.0),
        },
    }


def _apertus_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    return (*plain_rules(spec), *xielu_rules())


def _apertus_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The family slows its pairs where a file says nothing; in a file of llama.cpp nothing means that they are not.
    plain = {"rope_type": "default", "rope_theta": facts["rope.freq_base"]}
    config = {**whole_config(facts, tensors), "tie_word_embeddings": False}  # the reader wants a head
    return {**config, "rope_parameters": plain}


_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "apertus": _Row("apertus", parts.rotary_facts, _apertus_config, _apertus_rules),
    "arcee": _Row("arcee", parts.rotary_facts, llama_config, llama_rules),
    "cohere2": _Row("cohere2", cohere_facts, _cohere2_config, cohere_rules),
    "ernie4_5": _Row("ernie4_5", parts.rotary_facts, _ernie_config, plain_rules),
    "exaone4": _Row("exaone4", _exaone4_facts, _exaone4_config, plain_rules),
    "glm4": _Row("glm4", parts.rotary_facts, _glm4_config, _glm4_rules, partial=True),
    "granite": _Row("granite", granite_facts, granite_config, llama_rules),
    "ministral3": _Row("mistral3", _ministral_facts, _ministral_config, llama_rules),
    "nemotron": _Row("nemotron", _phi_facts, _nemotron_config, _nemotron_rules, partial=True),
    "olmo2": _Row("olmo2", parts.rotary_facts, whole_config, plain_rules),
    "olmo3": _Row("olmo2", _olmo3_facts, _olmo3_config, plain_rules, told_by="attention.sliding_window"),
    "phi": _Row("phi2", _phi_facts, _phi_config, _phi_rules, partial=True),
    "phi3": _Row("phi3", _phi3_facts, _phi3_config, _phi3_rules, partial=True),
    "seed_oss": _Row("seed_oss", parts.rotary_facts, _seed_oss_config, partial(plain_rules, before=BEHIND)),
    "smollm3": _Row("smollm3", parts.rotary_facts, _smollm3_config, llama_rules),
    "starcoder2": _Row("starcoder2", _phi_facts, _starcoder2_config, plain_rules),
}
"""By ``model_type``."""
