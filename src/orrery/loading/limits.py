"""What no published model reaches: bounds that stop a hostile ``config.json`` before anything is built from it."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.models.assemblies import AssemblySpec
from orrery.models.condensed import condense
from orrery.nn.feedforward.moe import MoE
from orrery.nn.spec import traverse

LAYERS, EXPERTS, ALL_EXPERTS, HEADS, NUMBER = 1_000, 2_048, 65_536, 65_536, 2**31 - 1
_BOUNDS = (
    ("*experts*", EXPERTS),
    ("*layers*", LAYERS),
    ("n_layer", LAYERS),
    ("*group*", LAYERS),
    ("*_types", LAYERS),
    ("*head*", HEADS),
    ("*", NUMBER),
)
"""The most that a whole number may be, by the first pattern that its key matches: each makes as many modules."""
_SLACK = 4


def check_numbers(config: Mapping[str, Any], path: Path) -> None:
    """Refuse whole numbers that would take hours or all memory to act upon.

    Raises:
        ModelFileError: names the key, the number and the bound.
    """
    for key, number in _numbers("", config):
        bound = next(bound for pattern, bound in _BOUNDS if fnmatch(key, pattern))
        if abs(number) > bound:
            raise ModelFileError(
                f"{path}: {key} = {number} is more than any model has, {bound:,}", "get the file again from its source"
            )


def check_size(spec: AssemblySpec, elements: int, path: Path) -> None:
    """Refuse an architecture that is far larger than the files beside it, before it is built.

    Raises:
        ModelFileError: names both sizes.
    """
    experts = sum(part.router.experts for _, part in traverse(spec) if isinstance(part, MoE.Spec))
    if experts > ALL_EXPERTS:
        raise ModelFileError(
            f"{path} describes {experts:,} experts, more than any model has", "get the file again from its source"
        )
    described = condense(spec).parameters()
    if described > _SLACK * elements:
        raise ModelFileError(
            f"{path} describes {described:,} parameters, the files hold {elements:,}",
            "config.json and the weights must come from the same model",
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
