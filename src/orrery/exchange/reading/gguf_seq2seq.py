"""Encoder-decoders of GGUF files: T5 and its descendants, of which the file keeps both stacks.

Where the network has a gate it is gelu, else relu, and distances have 128 tokens at most: no file says otherwise. UMT5
is told from T5 by the biases of its second layer. llama.cpp leaves out the scale of a tied head, which the makers have.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/models/t5.cpp``.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.exchange.reading import gguf_parts as parts
from orrery.exchange.reading.gguf_parts import Config, Facts

_STACKS = {"enc": "reader.stack", "dec": "decoder"}
_FURTHEST = 128
_NORMS = (("attn_norm", "attention.pre"), ("cross_attn_norm", "cross.pre"), ("ffn_norm", "feed_forward.pre"))
_MATRICES = tuple((f"ffn_{part}", f"feed_forward.branch.{part}") for part in ("gate", "up", "down"))
_ATTENTION = tuple(
    (f"{theirs}_{x}", f"{ours}.branch.{'out' if x == 'o' else x}")
    for theirs, ours in (("attn", "attention"), ("cross_attn", "cross"))
    for x in "qkvo"
)


def _facts(spec: Any) -> Facts:
    """Return the facts of an encoder-decoder."""
    block = spec.reader.stack.blocks[0].residuals
    attention, network = block["attention"].branch, block["feed_forward"].branch
    buckets = next(iter(spec.decoder.positions.values())).buckets
    epsilon = spec.decoder.final.parts[0].eps
    return {
        "vocab_size": spec.reader.embed.vocabulary,
        "context_length": spec.context,
        "embedding_length": spec.width,
        "feed_forward_length": network.hidden,
        "block_count": len(spec.reader.stack.blocks),
        "decoder_block_count": len(spec.decoder.blocks),
        "attention.head_count": attention.heads,
        "attention.key_length": attention.head_width,
        "attention.value_length": attention.head_width,
        "attention.layer_norm_epsilon": epsilon,
        "attention.layer_norm_rms_epsilon": epsilon,
        "attention.relative_buckets_count": buckets.count,
        "decoder_start_token_id": spec.start,
    }


def _config(facts: Mapping[str, Any], tensors: Collection[str]) -> Config:
    parts.pass_over(facts, "attention.layer_norm_epsilon", "attention.head_count_kv")
    width = facts.get("attention.key_length", facts["embedding_length"] // facts["attention.head_count"])
    if facts.get("attention.value_length", width) != width:
        message = f"attention.value_length = {facts['attention.value_length']} beside keys of {width} is not built"
        raise ModelFileError(message, parts.HINT)
    gated = "enc.blk.0.ffn_gate.weight" in tensors
    return {
        "vocab_size": facts["vocab_size"],
        "n_positions": facts["context_length"],
        "d_model": facts["embedding_length"],
        "d_kv": width,
        "d_ff": facts["feed_forward_length"],
        "num_layers": facts["block_count"],
        "num_decoder_layers": facts.get("decoder_block_count", facts["block_count"]),
        "num_heads": facts["attention.head_count"],
        "relative_attention_num_buckets": facts["attention.relative_buckets_count"],
        "relative_attention_max_distance": _FURTHEST,
        "layer_norm_epsilon": facts["attention.layer_norm_rms_epsilon"],
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": "output.weight" not in tensors,
        "decoder_start_token_id": facts.get("decoder_start_token_id", 0),
    }


def _stacks() -> Iterator[Rule]:
    """Yield the rules of both stacks but for their positions."""
    for theirs, ours in _STACKS.items():
        yield from renames(
            f"{theirs}.blk.{{i}}", f"{ours}.blocks.{{i}}", (*_NORMS, *_ATTENTION, *_MATRICES), ("weight",)
        )
        yield rename(f"{theirs}.output_norm.weight", f"{ours}.final.0.weight")


def _rules(spec: Any) -> tuple[Rule, ...]:
    """Return the rules of T5, whose first layers hold the biases of all, and of UMT5, whose layers have their own."""
    tables = (
        rule
        for theirs, ours in _STACKS.items()
        for rule in (
            rename(f"{theirs}.blk.0.attn_rel_b.weight", f"{ours}.positions.relative.table.weight"),
            rename(f"{theirs}.blk.{{i}}.attn_rel_b.weight", f"{ours}.positions.relative_{{i}}.table.weight"),
        )
    )
    outer = (
        rename("token_embd.weight", "reader.embed.token.weight"),
        rename("output.weight", "head.vocabulary.weight"),
    )
    return (*outer, *tables, *_stacks())


UNREAD = frozenset({"dec.blk.0.cross_attn_rel_b.weight"})
"""Of the first checkpoints: a table for the cross-attention, which never had positions."""
_Row = parts.GgufArchitecture
ARCHITECTURES = {
    "t5": _Row("t5", _facts, _config, _rules, rotary=False),
    "mt5": _Row("t5", _facts, _config, _rules, rotary=False),
    "umt5": _Row("t5", _facts, _config, _rules, rotary=False, told_by="enc.blk.1.attn_rel_b.weight"),
}
"""By ``model_type``."""
