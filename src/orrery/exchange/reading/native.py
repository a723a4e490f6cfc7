"""Models in the layout of Meta's and Mistral's own programs: params.json beside consolidated weights.

They are read as a config.json of the family would say it, through the family's rules under other names. Neighbouring
channels of a head turn together here, which Hugging Face's files have half a head apart.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.layouts import RotaryInterleaved
from orrery.checkpoints.rules import Rule
from orrery.checkpoints.tensors import TensorFile
from orrery.errors import ModelFileError
from orrery.exchange.reading.files import CONFIG, Weights, only_pickled, open_shards, read_json
from orrery.families import load_family, rules_of
from orrery.families._wrappers import unwrapped
from orrery.models.limits import check_numbers

PARAMS, INDEX = "params.json", "consolidated.safetensors.index.json"
_READ = frozenset({
    "dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "hidden_dim", "norm_eps", "vocab_size", "rope_theta",
    "sliding_window", "moe", "multiple_of", "ffn_dim_multiplier", "use_scaled_rope", "rope_scaling_factor",
    "max_seq_len", "tied_embeddings",
})  # fmt: skip
_PASSED_OVER = frozenset({"max_batch_size", "dropout"})
_WITHOUT_MEANING: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("transformer",), "lora": (None,), "vision_encoder": (None,), "_sliding_window": (None,),
    "use_biases": (False, None), "causal": (True,), "lora_modules": (None, {}),
}  # fmt: skip
"""Keys that change no number with these values."""
_KINDS: Mapping[str, Any] = {
    "sliding_window": int | None, "moe": dict | None, "rope_theta": int | float | None, "vocab_size": int | None,
    "rope_scaling_factor": int | float | None, "use_scaled_rope": bool | None,
}  # fmt: skip
_THEIRS = {
    "model.embed_tokens.": "tok_embeddings.", "model.norm.": "norm.", "lm_head.": "output.",
    "model.layers.": "layers.", "input_layernorm.": "attention_norm.", "post_attention_layernorm.": "ffn_norm.",
    "mlp.gate_proj.": "feed_forward.w1.",
    "mlp.down_proj.": "feed_forward.w2.", "mlp.up_proj.": "feed_forward.w3.", "block_sparse_moe.": "feed_forward.",
    **{f"self_attn.{letter}_proj.": f"attention.w{letter}." for letter in "qkvo"},
}  # fmt: skip
"""What parts of names in Hugging Face's files are called by Meta and Mistral."""
_TURNED = re.compile(r"attention\.w([qk])\.")
_BESIDE_COLUMNS = re.compile(r"\.(attention\.wo|feed_forward\.w2)\.weight$")
_NO_WEIGHT = re.compile(r"(^|\.)(rope\.freqs|freqs_(cos|sin|cis)|attention\.mask|attn\.bias)$")
"""Frequencies of rotary positions and causal masks, which follow from the configuration."""
_HIDDEN = re.compile(r"layers\.0\.feed_forward\.(experts\.0\.)?w1\.weight")
_SMALL_LLAMA_32 = (2048, 3072)
"""Widths of Llama 3.2 1B and 3B, whose rotation is stretched by 32; that of the others by 8."""


@dataclass(frozen=True)
class NativeModel:
    """What a model in a layout of its makers' is.

    Attributes:
        config: what its config.json would say.
        rules: from the tensors of its files to ours.
        path: the file that describes it, for errors.
    """

    config: Mapping[str, Any]
    rules: tuple[Rule, ...]
    path: Path


def is_native(folder: Path) -> bool:
    """Say whether a folder has a model of Meta's or Mistral's in their own layout, and none in Hugging Face's."""
    return (folder / PARAMS).is_file() and not (folder / CONFIG).is_file() and any(folder.glob("consolidated*"))


def open_consolidated(folder: Path) -> Weights:
    """Open the weights of such a folder.

    Raises:
        ModelFileError: they are damaged, or in a pickle alone.
    """
    if (folder / INDEX).is_file():
        files = open_shards(folder, INDEX)
    elif not (files := [TensorFile(path) for path in sorted(folder.glob("consolidated*.safetensors"))]):
        raise only_pickled(folder, next(iter(sorted(folder.glob("consolidated*")))))
    return Weights(files).renamed(name_alone)


def native_of(folder: Path, tensors: Mapping[str, Tensor]) -> NativeModel:
    """Return the model that a folder's params.json describes; see ``of_params``."""
    return of_params(read_json(folder / PARAMS), folder / PARAMS, tensors)


def of_params(given: Mapping[str, Any], path: Path, tensors: Mapping[str, Tensor]) -> NativeModel:
    """Return the model that a params.json describes; what it leaves to a formula is taken from the tensors' shapes.

    Args:
        given: its content.
        path: the file.
        tensors: by their names in the files; they may be on the meta device.

    Raises:
        ModelFileError: it lacks a key, or has one that may change numbers and is not read.
    """
    check_numbers(given, path)
    unread = given.keys() - _READ - _PASSED_OVER
    odd = sorted(key for key in unread if given[key] not in _WITHOUT_MEANING.get(key, ()))
    odd += [key for key, kind in _KINDS.items() if not isinstance(given.get(key), kind)]
    if odd or (given.get("moe") and given["moe"].keys() != {"num_experts", "num_experts_per_tok"}):
        raise ModelFileError(
            f"{path}: {', '.join(odd or ['moe'])} may change numbers, and no such model is read in this layout",
            "take the Hugging Face folder of the same model",
        )
    if missing := [key for key in ("dim", "n_layers", "n_heads") if type(given.get(key)) is not int]:
        raise ModelFileError(f"{path} has no number {missing[0]}", "get the file again from its source")
    config = _config(given, tensors)
    family, heads = load_family(config["model_type"]), config["num_attention_heads"]
    turned = {"q": heads, "k": config["num_key_value_heads"]}
    return NativeModel(config, tuple(_native(rule, turned) for rule in rules_of(family, config)), path)


def _config(given: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    rows = (len(tensor) for name, tensor in tensors.items() if _HIDDEN.fullmatch(name) and tensor.dim())
    hidden = given.get("hidden_dim") or next(rows, 0)
    table = tensors.get("tok_embeddings.weight")
    vocabulary = given.get("vocab_size") or -1
    config = {
        "hidden_size": given["dim"],
        "intermediate_size": hidden,
        "num_hidden_layers": given["n_layers"],
        "num_attention_heads": given["n_heads"],
        "num_key_value_heads": given.get("n_kv_heads") or given["n_heads"],
        "rms_norm_eps": given.get("norm_eps", 1e-5),
        "vocab_size": len(table) if vocabulary == -1 and table is not None and table.dim() else vocabulary,
        "tie_word_embeddings": "output.weight" not in tensors,
        **({"head_dim": given["head_dim"]} if given.get("head_dim") else {}),
    }
    return config | (_of_meta(given) if "multiple_of" in given else _of_mistral(given))


def _of_meta(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is peculiar to Llama: the context is that of the version which has these settings."""
    base, scaled = given.get("rope_theta") or 10_000.0, bool(given.get("use_scaled_rope"))
    contexts: dict[float, int] = {
        500_000: 8192,
        1_000_000: 16384,
        10_000: 2048 if given.get("norm_eps") == 1e-6 else 4096,
    }
    context = 131_072 if scaled else contexts.get(base, 4096)
    factor = given.get("rope_scaling_factor") or (32 if given["dim"] in _SMALL_LLAMA_32 else 8)
    scaling = {"rope_type": "llama3", "factor": float(factor), "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}  # fmt: skip
    return {
        "model_type": "llama",
        "max_position_embeddings": given.get("max_seq_len") or context,
        "rope_theta": base,
        **({"rope_scaling": scaling} if scaled else {}),
    }


def _of_mistral(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is peculiar to Mistral: its first version, with a window, has another base where none is said."""
    window, mixture = given.get("sliding_window"), given.get("moe")
    rest = {
        "max_position_embeddings": given.get("max_seq_len") or 32_768,
        "rope_theta": given.get("rope_theta") or (10_000.0 if window else 1_000_000.0),
        "sliding_window": window,
    }
    if not mixture:
        return {"model_type": "mistral", **rest}
    experts = {"num_local_experts": mixture["num_experts"], "num_experts_per_tok": mixture["num_experts_per_tok"]}
    return {"model_type": "mixtral", **rest, **experts}


def _native(rule: Rule, turned: Mapping[str, int]) -> Rule:
    """Return a rule of a family for the names of its makers."""
    name = rule.theirs
    for theirs, makers in _THEIRS.items():
        name = name.replace(theirs, makers)
    found = _TURNED.search(name)
    return replace(rule, theirs=name, layout=RotaryInterleaved(turned[found[1]]) if found else rule.layout)


def name_alone(name: str) -> str | None:
    """Return a name without what a training put around the model; None for what is no weight."""
    return None if _NO_WEIGHT.search(name) else unwrapped(name)


def joined(parts: Sequence[Mapping[str, Tensor]], given: Mapping[str, Any], path: Path) -> dict[str, Tensor]:
    """Return the tensors of a model that was cut for several GPUs, as Meta's files are.

    Norms are whole in every part; matrices that read what the parts compute are cut by columns, the others by rows,
    and so is the table of tokens from Llama 3 on.

    Raises:
        ModelFileError: a part is missing.
    """
    width, queries = given.get("dim"), parts[0].get("layers.0.attention.wq.weight")
    rows = len(queries) if queries is not None and queries.dim() else 0
    count = width // rows if type(width) is int and rows else 0
    if "multiple_of" in given and count > len(parts):
        message = f"{path.parent} has {len(parts)} of the {count} parts of the weights"
        raise ModelFileError(message, "get the others from the same source")
    try:
        return {name: _together(name, [part[name] for part in parts], width) for name in parts[0]}
    except (KeyError, IndexError, RuntimeError) as error:
        message = f"{path.parent}: the parts of the weights do not fit each other: {str(error).splitlines()[0]}"
        raise ModelFileError(message, "get all of them from one source") from error


def _together(name: str, pieces: Sequence[Tensor], width: Any) -> Tensor:
    columns = _BESIDE_COLUMNS.search(name) or (name == "tok_embeddings.weight" and pieces[0].shape[1] != width)
    return pieces[0] if len(pieces) == 1 or pieces[0].dim() == 1 else torch.cat(list(pieces), 1 if columns else 0)
