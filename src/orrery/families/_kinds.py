"""Which values a key of ``config.json`` may have at all: told from the family's default, before anything uses them."""

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

from orrery.errors import ModelFileError

_ANY = ("truth value", "number", "text", "list", "object")

_NUMBERS = (
    "attention_head_size", "classifier_dropout", "clip_qkv", "cls_dropout", "decoder_start_token_id",
    "decoder_vocab_size", "ffn_hidden_size", "final_logit_softcapping", "head_dim", "intermediate_size", "n_group",
    "n_inner", "num_decoder_layers", "num_experts_per_tok", "num_key_value_heads", "num_kv_heads", "num_labels",
    "num_ln_in_parallel_attn", "num_local_experts", "pooler_hidden_size", "pooler_output_size", "qk_head_dim",
    "sliding_window", "topk_group", "word_embed_proj_dim",
)  # fmt: skip
"""Keys that are numbers, or null by default."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "architectures": ("list",),
    "attention_layers": ("list",),
    "attn_config": ("object",),
    "id2label": ("object",),
    "layer_types": ("list",),
    "mlp_only_layers": ("list",),
    "no_rope_layers": ("list",),
    "pos_att_type": ("text", "list"),
    "rope_*": ("object",),
    **dict.fromkeys(_NUMBERS, ("number",)),
}
"""The kinds of the keys whose default is null and does not tell, by the first pattern that fits.

Another key with such a default, of a family from outside, may be of any kind: only that family knows.
"""

_NULLABLE = (
    "bos_token_id", "pad_token_id", "decoder_start_token_id", "head_dim", "num_key_value_heads", "sliding_window",
    "q_lora_rank", "n_shared_experts", "*_softcapping", "rope_parameters", "hidden_activation",
)  # fmt: skip
"""Keys whose null means that there is no such thing, or that another key tells, though their default is not null."""

_REAL = ("query_pre_attn_scalar", "alibi_bias_max", "expansion_ratio", "*_multiplier", "*_scal*", "swiglu_*")
"""Numbers that need not be whole although their default is."""

_NEGATIVE = ("*_token_id",)
"""Numbers that may be negative though their default is not: there is no such token."""

_POSITIVE = (
    "vocab_size", "type_vocab_size", "hidden_size", "d_model", "d_kv", "dim", "n_embd", "num_attention_heads",
    "num_hidden_groups", "inner_group_num", "n_group", "conv_groups", "decoder_sparse_step", "no_rope_layer_interval",
    "global_attn_every_n_layers", "sliding_window_pattern", "relative_attention_*", "rotary_dim",
    "partial_rotary_factor", "rotary_pct", "rotary_emb_base", "window_size", "q_lora_rank", "n_shared_experts",
    "moe_intermediate_size", "embedding_size", "ffn_hidden_size", "topk_group", "num_experts_per_tok", "*_softcapping",
    "word_embed_proj_dim", "kv_lora_rank", "v_head_dim", "qk_rope_head_dim", "num_hidden_layers", "num_layers",
    "num_decoder_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "head_dim", "attention_head_size",
    "num_key_value_heads", "num_kv_heads", "intermediate_size", "n_inner", "attention_multiplier", "logits_scaling",
    "query_pre_attn_scalar", "rope_theta", "rope_local_base_freq", "ffn_dim", "*_ffn_dim", "hidden_dim", "d_ff",
    "shared_expert_intermediate_size",
)  # fmt: skip
"""Numbers that may not be zero, unless that is the default: something is divided by them, or nothing is left."""


def check_value(family: str, key: str, value: Any, default: Any, name: str | None = None) -> None:
    """Refuse a value of another kind than the default, null without a meaning, and numbers too small.

    The word "false" would count as true, and a null or a negative number fails far from the key, or not at all.

    ``name`` is what the file calls the key, where that is another of its names.

    Raises:
        ModelFileError: names the key, the value and what it should be.
    """
    known = (_kind(default),) if default is not None else kinds_of(key) or _ANY
    fault = None
    if value is None:
        if default is not None and known != ("truth value",) and not _among(key, _NULLABLE):
            fault = f"null, not a {known[0]}"
    elif _kind(value) not in known:
        fault = f"a {_kind(value)}, not a {' or a '.join(known)}"
    elif known == ("number",) and value < 0 <= (default or 0) and not _among(key, _NEGATIVE):
        fault = "less than zero"
    elif _whole(key, default) and isinstance(value, float) and not value.is_integer():
        fault = "not a whole number"
    elif value == 0 != default and _among(key, _POSITIVE):
        fault = "not more than zero"
    if fault:
        raise ModelFileError(
            f"{family}: {name or key} = {str(value)[:40]!r} is {fault}", "get the file again from its source"
        )


def _whole(key: str, default: Any) -> bool:
    """Say whether a key counts something."""
    return type(default) is int and not _among(key, _REAL)


def kinds_of(key: str) -> tuple[str, ...] | None:
    """Return the kinds of a key whose default is null, or nothing where no family of the package has it."""
    return next((kinds for pattern, kinds in _KINDS.items() if fnmatch(key, pattern)), None)


def _among(key: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(key, pattern) for pattern in patterns)


def _kind(value: Any) -> str:
    """Return what JSON calls a value."""
    for kind, name in ((bool, "truth value"), (int | float, "number"), (str, "text"), (list | tuple, "list")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
