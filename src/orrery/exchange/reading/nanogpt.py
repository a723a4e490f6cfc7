"""Checkpoints of nanoGPT: GPT-2's architecture with matrices that are not turned, and without biases where asked."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from orrery.checkpoints.layouts import ROWS
from orrery.errors import ModelFileError
from orrery.exchange.reading.native import NativeModel
from orrery.families import load_family, rules_of
from orrery.models.limits import check_numbers

_KEYS = {
    "n_layer": "n_layer", "n_head": "n_head", "n_embd": "n_embd", "block_size": "n_positions",
    "vocab_size": "vocab_size",
}  # fmt: skip
_BESIDE = ("bias", "dropout")
_BIASED = re.compile(r"transformer\.(h\.\d+\..+|ln_f)\.weight")


def is_nanogpt(arguments: Mapping[str, Any]) -> bool:
    """Say whether the ``model_args`` of a checkpoint are nanoGPT's."""
    return "n_embd" in arguments and "block_size" in arguments


def of_nanogpt(arguments: Mapping[str, Any], path: Path) -> NativeModel:
    """Return the GPT that the ``model_args`` of nanoGPT describe: GPT-2 whose matrices are not turned, with exact gelu.

    Raises:
        ModelFileError: it lacks a key, or has one of a program that was changed.
    """
    check_numbers(arguments, path)
    odd = sorted(arguments.keys() ^ {*_KEYS, *_BESIDE})
    if missing := [key for key in odd if key in _KEYS]:
        raise ModelFileError(f"{path}: its model_args lack {missing[0]}", "get the file again from its source")
    if unknown := [key for key in odd if key not in _BESIDE and key not in _KEYS]:
        raise ModelFileError(
            f"{path}: its model_args have {', '.join(unknown)}, which nanoGPT has not: the program was changed",
            "write the model as a Hugging Face folder with the program that trained it",
        )
    named = {theirs: arguments[key] for key, theirs in _KEYS.items()}
    config = {"model_type": "gpt2", **named, "activation_function": "gelu"}
    rules = rules_of(load_family("gpt2"), config)
    return NativeModel(config, tuple(replace(rule, layout=ROWS) for rule in rules), path)


def with_biases(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with a bias of zeros for every matrix and norm that was trained without one."""
    weights = {name: tensor for name, tensor in tensors.items() if _BIASED.fullmatch(name)}
    zeros = {f"{name.removesuffix('weight')}bias": tensor.new_zeros(len(tensor)) for name, tensor in weights.items()}
    return {**zeros, **tensors}
