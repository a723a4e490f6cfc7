"""What no published model reaches: bounds that stop a hostile ``config.json`` before anything is built from it."""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from orrery.errors import MachineError, ModelFileError
from orrery.models.distinct_blocks import distinct_blocks
from orrery.models.model import ModelSpec
from orrery.nn.feedforward.moe import MoE
from orrery.nn.spec import traverse

LAYERS, EXPERTS, ALL_EXPERTS, HEADS, NUMBER = 1_000, 2_048, 65_536, 65_536, 2**31 - 1
_BOUNDS = (
    ("*experts*", EXPERTS),
    ("*layers*", LAYERS),
    ("n_layer", LAYERS),
    ("group", NUMBER),  # inputs that share a scale; the others are groups of layers, experts or channels
    ("*group*", LAYERS),
    ("*_types", LAYERS),
    ("*head*", HEADS),
    ("*", NUMBER),
)
"""The most that a whole number may be, by the first pattern that its key matches: each makes as many modules."""
_SLACK = 4


def check_numbers(config: Mapping[str, Any], path: Path | str) -> None:
    """Refuse whole numbers that would take hours or all memory to act upon.

    Raises:
        ModelFileError: names the key, the number and the bound.
    """
    for key, number in _numbers("", config):
        bound = next(bound for pattern, bound in _BOUNDS if fnmatch(key, pattern))
        if abs(number) > bound:
            raise ModelFileError(
                f"{path}: {key[:100]} = {number} is more than any model has, {bound:,}",
                "get the file again from its source",
            )


def check_size(spec: ModelSpec, elements: int, path: Path) -> None:
    """Refuse an architecture that is far larger than the files beside it, before it is built.

    Raises:
        ModelFileError: names both sizes.
    """
    experts = sum(part.router.experts for _, part in traverse(spec) if isinstance(part, MoE.Spec))
    if experts > ALL_EXPERTS:
        raise ModelFileError(
            f"{path} describes {experts:,} experts, more than any model has", "get the file again from its source"
        )
    described = distinct_blocks(spec).parameters()
    if described > _SLACK * elements:
        raise ModelFileError(
            f"{path} describes {described:,} parameters, the files hold {elements:,}",
            "config.json and the weights must come from the same model",
        )


def check_memory(spec: ModelSpec, copies: int, source: str) -> None:
    """Refuse a model to be trained that this machine's memory cannot hold, before it is built.

    Args:
        spec: the architecture.
        copies: float32 numbers for each parameter: the weight, its gradient, what the optimizer keeps.
        source: what describes it, for the message.

    Raises:
        MachineError: names both sizes.
    """
    needed = distinct_blocks(spec).parameters() * copies * 4
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise MachineError(
            f"{source} describes {needed // copies // 4:,} parameters: {needed:,} bytes with gradients and optimizer, "
            f"this machine has {there:,}",
            "give it fewer layers, a smaller width or a smaller vocabulary",
        )


def _numbers(key: str, value: Any) -> Iterator[tuple[str, int]]:
    """Yield the whole numbers of a configuration with the key that they stand under."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(str(name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(key, inner)
    elif type(value) is int:
        yield key, value
