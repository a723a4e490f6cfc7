"""The dotted keys of a schema of settings, such as ``training.optimizer.rate``."""

import types
import typing
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from orrery.schema.registry import Registry, settings_of


@dataclass(frozen=True)
class Known:
    """The names that a place knows: flags, spelled with underscores, and the dotted keys of schemas."""

    flags: Collection[str] = ()
    schemas: Collection[type[BaseModel]] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.flags or any(has_key(schema, name) for schema in self.schemas)

    def names(self) -> list[str]:
        """Return the names but those of parts found by name, which would all be imported for that."""
        return [*self.flags, *(key for schema in self.schemas for key in keys(schema, registered=False))]


def keys(schema: type[BaseModel], path: str = "", *, registered: bool = True) -> Iterator[str]:
    """Yield every dotted key; ``*`` stands for a name that is free.

    Args:
        schema: the settings.
        path: before each key.
        registered: also those of parts found by name, all of which are imported for that.
    """
    for name, field in schema.model_fields.items():
        key = f"{path}{field.alias or name}"
        yield key
        for inner, section in _sections(field.annotation, field.metadata, registered):
            yield from keys(section, f"{key}{inner}.", registered=registered)


def has_key(schema: type[BaseModel], key: str) -> bool:
    """Say whether settings of a schema may have a dotted key; below a free mapping any may be."""
    first, dot, rest = key.partition(".")
    for name, field in schema.model_fields.items():
        if first != (field.alias or name):
            continue
        if not dot or (field.annotation is not None and _is_free(field.annotation)):
            return True
        return any(
            has_key(section, rest.partition(".")[2] if inner else rest) or (bool(inner) and "." not in rest)
            for inner, section in _sections(field.annotation, field.metadata, True)
        )
    return False


def _is_free(annotation: Any) -> bool:
    """Say whether an annotation is a mapping to anything, as a family's own configuration is, or may be one."""
    return any(
        typing.get_origin(one) is dict and typing.get_args(one)[1] is Any
        for one in (annotation, *typing.get_args(annotation))
    )


def _sections(annotation: Any, beside: Collection[Any], registered: bool) -> list[tuple[str, type[BaseModel]]]:
    """Return the sections that an annotation may be, each with what stands between it and its key."""
    registries = [one for one in beside if isinstance(one, Registry)]
    if registries:
        names = [(one, name) for one in registries for name in one.names()] if registered else []
        return [("", settings_of(one.find(name))) for one, name in names]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [("", annotation)]
    if origin is typing.Annotated:
        return _sections(parts[0], parts[1:], registered)
    if origin in (typing.Union, types.UnionType):
        return [section for one in parts for section in _sections(one, (), registered)]
    if origin is dict:
        return [(f".*{inner}", section) for inner, section in _sections(parts[1], (), registered)]
    return []
