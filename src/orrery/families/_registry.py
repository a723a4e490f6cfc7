"""Families by name: ``families/<model_type>.py``, or a module that the user's own Python registered."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError, UsageError
from orrery.nn.spec import ModuleSpec

_registered: dict[str, str] = {}


@runtime_checkable
class Family(Protocol):
    """What a family file offers.

    Attributes:
        ARCHITECTURE: the class that ``config.json`` names.
        WEIGHTS: the rules of its files, or a function from a configuration to them.
        DEFAULTS: every key of ``config.json`` that the family uses, with what an absent key means.
        TINY: a configuration of a few thousand parameters, on which the laws and the documentation run.
    """

    ARCHITECTURE: str
    WEIGHTS: Sequence[Rule] | Callable[[Mapping[str, Any]], Sequence[Rule]]
    DEFAULTS: Mapping[str, Any]
    TINY: Mapping[str, Any]

    def spec(self, config: Mapping[str, Any]) -> ModuleSpec:
        """Return the architecture that a ``config.json`` describes."""
        ...


def rules_of(family: Family, config: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return a family's rules for a configuration; some layouts depend on it (the number of heads, the head)."""
    weights = family.WEIGHTS
    return tuple(weights(config) if callable(weights) else weights)


def names() -> list[str]:
    """Return the names of all families."""
    files = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}
    return sorted(files | set(_registered))


def register(path: str, name: str | None = None) -> None:
    """Add a family from a module of the user's own, by its import path; never called by a file or the environment.

    Args:
        path: dotted path of an importable module with ``spec``, ``WEIGHTS``, ``DEFAULTS``, ``TINY`` and
            ``ARCHITECTURE``.
        name: the ``model_type``; by default the module's last name.
    """
    _registered[name or path.rpartition(".")[2]] = path


def load_family(name: Any) -> Family:
    """Return the family of a ``model_type``.

    Raises:
        ModelFileError: there is none of this name.
        UsageError: a registered module lacks a part.
    """
    known = isinstance(name, str) and re.fullmatch(r"[a-z0-9_-]+", name)
    if not known or not {name, name.replace("-", "_")} & set(names()):
        raise ModelFileError(f"no family {name!r}", f"there are: {', '.join(names())}")
    module = importlib.import_module(_registered.get(name, f"{__package__}.{name.replace('-', '_')}"))
    for part in ("spec", "WEIGHTS", "DEFAULTS", "TINY", "ARCHITECTURE"):
        if not hasattr(module, part):
            raise UsageError(
                f"the family {name!r} has no {part}", "a family file defines them all; see families/gpt2.py"
            )
    return cast(Family, module)
