"""The architectures that Orrery and llama.cpp both know: facts of a spec, and rules for the names of its tensors.

A GGUF file says less than ``config.json``: its reader knows the activation, the scale of the scores and much else by
the architecture's name alone. So each entry also says which configuration a reader makes of the facts, and an export
whose model is not that of this configuration is refused, with the setting that cannot be said.
"""

from collections.abc import Collection, Mapping
from typing import Any

from orrery.checkpoints.layouts import Shifted
from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.exchange.reading import (
    gguf_delta,
    gguf_dense,
    gguf_experts,
    gguf_hybrid,
    gguf_mixtures,
    gguf_older,
    gguf_ranking,
    gguf_recurrent,
    gguf_seq2seq,
    gguf_vectors,
)
from orrery.exchange.reading.gguf_parts import (
    BLOCK,
    MATRICES,
    NORMS,
    OUTER,
    ROTARY_MATRICES,
    THEIRS,
    Config,
    Facts,
    GgufArchitecture,
    branch_of,
    gpt2_config,
    head_rules,
    layer_kinds,
    layer_norm_facts,
    pattern_facts,
    rotary_config,
    rotary_facts,
)
from orrery.models.decoder import Decoder

# GPT-2 and BLOOM


def _fused_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    together = (
        fused(f"{THEIRS}.attn_qkv.{p}", tuple(f"{BLOCK}.attention.branch.{x}.{p}" for x in "qkv"))
        for p in ("weight", "bias")
    )
    return (
        *OUTER,
        rename("position_embd.weight", "stack.positions.learned.table.weight"),
        *(rename(f"token_embd_norm.{p}", f"stack.start.{p}") for p in ("weight", "bias")),
        *renames(THEIRS, BLOCK, (*NORMS, *MATRICES)),
        *together,
    )


def _gpt2_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {
        **gpt2_config(facts),
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


def _internlm3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # A file of this architecture is read as a Llama, whose output has a bias where its queries have one.
    biased = "blk.0.attn_q.bias" in tensors
    return {
        **rotary_config(facts, tensors),
        "head_dim": facts["attention.key_length"],
        "qkv_bias": biased,
        "bias": biased,
    }


def _qwen3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    ranks = gguf_ranking.decoder_config(facts, tensors, "Qwen3ForSequenceClassification")
    return {**rotary_config(facts, tensors), "head_dim": facts["attention.key_length"], **ranks}


def _mistral_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    return {**rotary_config(facts, tensors), "head_dim": facts["attention.key_length"], "sliding_window": None}


# Gemma


def _gemma_rules(spec: Decoder.Spec) -> tuple[Rule, ...]:
    norms = (*NORMS, *gguf_dense.POST_NORMS, *gguf_dense.HEAD_NORMS)
    return (
        *(rule for rule in OUTER if not rule.theirs.startswith("output_norm")),
        Rule("output_norm.weight", ("stack.final.weight",), Shifted(1.0)),
        *(Rule(f"{THEIRS}.{theirs}.weight", (f"{BLOCK}.{ours}.weight",), Shifted(1.0)) for theirs, ours in norms),
        *renames(THEIRS, BLOCK, ROTARY_MATRICES),
        *head_rules(spec),
    )


def _gemma_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader ties the head whatever the file holds.
    return {**rotary_config(facts, tensors), "head_dim": facts["attention.key_length"], "tie_word_embeddings": True}


def _gemma2_facts(spec: Decoder.Spec) -> Facts:
    head: Any = spec.head
    caps = {
        "attn_logit_softcapping": branch_of(spec, "attention").scoring.cap,
        "final_logit_softcapping": getattr(head.cap, "cap", None),
    }
    given = {key: number for key, number in caps.items() if number is not None}
    return {**rotary_facts(spec), **pattern_facts(spec), **given}


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
        **layer_kinds(facts),
    }


def _gemma3_facts(spec: Decoder.Spec) -> Facts:
    local: Any = spec.stack.positions["local"]
    facts = {**rotary_facts(spec, positions="causal"), **pattern_facts(spec)}
    return {**facts, "rope.freq_base_swa": local.base}


def _gemma3_config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    # The reader knows the 27B model by its 62 layers; it alone scales by the width that a head would have.
    largest = facts["block_count"] == 62
    scale = facts["embedding_length"] // facts["attention.head_count"] if largest else facts["attention.key_length"]
    return {
        **_gemma_config(facts, tensors),
        "query_pre_attn_scalar": scale,
        "sliding_window": facts["attention.sliding_window"],
        "sliding_window_pattern": 6,
        "rope_local_base_freq": facts.get("rope.freq_base_swa", 10_000.0),
        **layer_kinds(facts),
    }


ARCHITECTURES = {
    "gpt2": GgufArchitecture("gpt2", layer_norm_facts, _gpt2_config, _fused_rules, rotary=False),
    "bloom": GgufArchitecture("bloom", layer_norm_facts, _bloom_config, _fused_rules, rotary=False),
    "llama": GgufArchitecture("llama", rotary_facts, gguf_dense.llama_config, gguf_dense.llama_rules),
    "internlm3": GgufArchitecture("llama", rotary_facts, _internlm3_config, gguf_dense.llama_rules),
    "mistral": GgufArchitecture("llama", rotary_facts, _mistral_config, gguf_dense.llama_rules),
    "qwen2": GgufArchitecture("qwen2", rotary_facts, rotary_config, gguf_dense.plain_rules),
    "qwen3": GgufArchitecture(
        "qwen3", rotary_facts, _qwen3_config, gguf_dense.plain_rules, older=gguf_ranking.head_rules
    ),
    "gemma": GgufArchitecture("gemma", rotary_facts, _gemma_config, _gemma_rules),
    "gemma2": GgufArchitecture("gemma2", _gemma2_facts, _gemma2_config, _gemma_rules),
    "gemma3_text": GgufArchitecture("gemma3", _gemma3_facts, _gemma3_config, _gemma_rules),
    **gguf_older.ARCHITECTURES,
    **gguf_dense.ARCHITECTURES,
    **gguf_mixtures.ARCHITECTURES,
    **gguf_experts.ARCHITECTURES,
    **gguf_recurrent.ARCHITECTURES,
    **gguf_hybrid.ARCHITECTURES,
    **gguf_seq2seq.ARCHITECTURES,
    **gguf_delta.ARCHITECTURES,
    **gguf_vectors.ARCHITECTURES,
}
"""By ``model_type``."""
