"""Specs: an architecture as a frozen tree of data, each node beside the module that it builds.

A spec is a frozen dataclass nested in its module under the name ``Spec``. Its ``kind`` is the place of that module
inside the package (``nn.norms.LayerNorm``), so a JSON tree resolves by validated name and never runs foreign code.
"""

import dataclasses
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform

from torch import nn

from orrery.errors import ModelFileError, UsageError
from orrery.nn.legacy_kinds import LEGACY_FIELDS, LEGACY_FORMS, LEGACY_KINDS, LEGACY_PARTS

_PACKAGE = __name__.partition(".")[0]
_KIND = re.compile(r"(nn|models)(\.[a-z_][a-z0-9_]*)+\.[A-Z][A-Za-z0-9]*")
_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def spec(cls: type[_Class]) -> type[_Class]:
    """Make a class a frozen, keyword-only dataclass: the only way a spec is declared."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


@spec
class Value(ABC):
    """A part of the architecture that is only data: a mask, a scaling rule."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Name the kind after the class itself, or after the module class that a ``Spec`` is nested in."""
        owner = cls.__qualname__.removesuffix(".Spec")
        cls.kind = f"{cls.__module__}.{owner}".removeprefix(f"{_PACKAGE}.")


@spec
class ModuleSpec(Value):
    """A node of the architecture; ``build(width)`` makes its module, with the width given once, from above.

    ``learns_bias`` says that the module adds something with a gradient to scores of attention, as a table of
    distances does: a kernel with a backward pass of its own may lack that gradient. ``keeps_state`` says that it
    leaves a state to the next call, and names a mask that does so (``RecurrentPast``).
    """

    learns_bias: ClassVar[bool] = False
    keeps_state: ClassVar[bool] = False

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return the module for a residual stream of ``width`` channels."""

    def out_width(self, width: int) -> int:
        """Return the channels that come out where ``width`` go in; nearly every part keeps them."""
        return width


_FOREIGN: dict[str, type[Value]] = {}
_Module = TypeVar("_Module", bound=type)


def register(cls: _Module) -> _Module:
    """Make known a part that a program defines, so that files which name it can be read; return it.

    Only what a program registers is ever taken from outside the package: a file alone imports nothing. Its kind is the
    name of the program's module and that of the class.

    Args:
        cls: a module with a ``Spec`` nested in it, or a value.

    Raises:
        UsageError: it has no spec, or stands in this package, whose parts are known.
    """
    spec: Any = getattr(cls, "Spec", cls)
    if not issubclass(spec, Value) or _KIND.fullmatch(spec.kind):
        message = f"{cls.__qualname__} is no part that can be registered: a module with a Spec from outside orrery"
        raise UsageError(message, "nest a class Spec(ModuleSpec) in it, made by @spec")
    _FOREIGN[spec.kind] = spec
    return cls


def to_json(value: Any) -> Any:
    """Return a spec tree as JSON values; the inverse of ``from_json``."""
    if isinstance(value, Value):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": value.kind, **fields}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


def from_json(value: Any, path: str = "spec") -> Any:
    """Return the spec tree that JSON values describe.

    Raises:
        ModelFileError: an unknown kind or field; the message names the path inside the tree.
    """
    if isinstance(value, Mapping) and "kind" in value:
        if isinstance(value["kind"], str) and value["kind"] in LEGACY_FORMS:
            value = LEGACY_FORMS[value["kind"]](value)
        cls = _resolve(value["kind"], path)
        known = {f.name for f in dataclasses.fields(cls)}
        names = LEGACY_FIELDS.get(cls.kind, {})
        value = _renewed(cls.kind, value)
        given = {names.get(key, key): from_json(item, f"{path}.{key}") for key, item in value.items() if key != "kind"}
        if unknown := sorted(set(given) - known):
            raise ModelFileError(
                f"{path}: {cls.kind} has no field {', '.join(map(repr, unknown))}",
                f"known fields: {', '.join(sorted(known))}; was the file written by a newer version?",
            )
        try:
            return cls(**given)
        except TypeError as error:
            raise ModelFileError(f"{path}: {error}", "add the missing field to the file") from error
    if isinstance(value, Mapping):
        return {key: from_json(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return tuple(from_json(item, f"{path}[{i}]") for i, item in enumerate(value))
    return value


def _renewed(kind: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a node whose parts are those of today, where a whole part has another form now."""
    parts = LEGACY_PARTS.get(kind, {})
    return {key: parts[key][1] if key in parts and item == parts[key][0] else item for key, item in value.items()}


def traverse(value: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    """Yield every spec of a tree with its dotted path, parents first."""
    # One loop: with a generator for each level, every spec of a deep tree would pass through all of them.
    waiting: list[tuple[str, Any]] = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Value):
            yield path, value
            children: list[tuple[str, Any]] = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        elif isinstance(value, Mapping):
            children = list(value.items())
        elif isinstance(value, tuple):
            children = [(str(i), item) for i, item in enumerate(value)]
        else:
            continue
        inside = f"{path}." if path else ""
        waiting.extend((inside + name, child) for name, child in reversed(children))


def _resolve(kind: Any, path: str) -> type[Value]:
    """Return the spec class of a kind, from this package or from what a program has registered."""
    if isinstance(kind, str) and kind in _FOREIGN:
        return _FOREIGN[kind]
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ModelFileError(
            f"{path}: {str(kind)[:100]!r} is not a kind of this package, nor one that this program has registered",
            "kinds look like nn.norms.LayerNorm; orrery.nn.spec.register makes your own known",
        )
    module, _, owner = LEGACY_KINDS.get(kind, kind).rpartition(".")
    try:
        defined = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), owner)
    except (ImportError, AttributeError) as error:
        raise ModelFileError(
            f"{path}: no such kind {kind[:100]!r}", "was the file written by a newer version?"
        ) from error
    cls = getattr(defined, "Spec", defined)
    if not (isinstance(cls, type) and issubclass(cls, Value)):
        raise ModelFileError(f"{path}: {kind!r} is not a spec", "kinds look like nn.norms.LayerNorm")
    return cls
