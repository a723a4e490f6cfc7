"""What a model learns and a GGUF file says among its facts: the four numbers of xIELU, one of each a layer.

Under the rules of an architecture each is a tensor with one element, ``blk.3.xielu.beta``; a file has one list of all
layers, ``xielu.beta``, or one number for all.
Source: https://github.com/ggml-org/llama.cpp, ``conversion/llama.py``; measured against llama.cpp itself.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.layouts import Column
from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.exchange.reading.gguf_parts import BLOCK, THEIRS

LEARNED = ("xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps")
"""The facts, which have no name of an architecture in front."""


def xielu_rules() -> tuple[Rule, ...]:
    """Return the rules of xIELU: two slopes that are vectors of one element, and two constants without an axis."""
    ours = f"{BLOCK}.feed_forward.branch.activation"
    slopes = (rename(f"{THEIRS}.xielu.{part}", f"{ours}.{part}") for part in ("alpha_n", "alpha_p"))
    constants = (Rule(f"{THEIRS}.xielu.{part}", (f"{ours}.{part}",), Column()) for part in ("beta", "eps"))
    return (*slopes, *constants)


def as_facts(tensors: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """Return the facts that stand for tensors of these names; without such tensors there are none."""
    found: dict[str, list[float]] = {}
    for fact in LEARNED:
        layers = [tensor for name, tensor in tensors.items() if name.endswith(f".{fact}")]
        if layers:
            found[fact] = [float(tensor.to(torch.float32)) for tensor in layers]
    return found


def as_tensors(facts: Mapping[str, Any], layers: int) -> dict[str, Tensor]:
    """Return the tensors that the facts of a file stand for.

    Raises:
        ModelFileError: a fact is no number, and no list of one for each layer.
    """
    made: dict[str, Tensor] = {}
    for fact in LEARNED:
        if fact not in facts:
            continue
        value = facts[fact] if isinstance(facts[fact], list) else [facts[fact]] * layers
        if len(value) != layers or not all(type(number) in (int, float) for number in value):
            raise ModelFileError(
                f"{fact} = {str(facts[fact])[:40]} is no number for each of {layers} layers", "get the file again"
            )
        made |= {f"blk.{layer}.{fact}": torch.tensor([float(number)]) for layer, number in enumerate(value)}
    return made


def is_learned(name: str) -> bool:
    """Say whether a tensor of the rules is a fact of the file."""
    return name.endswith(LEARNED)
