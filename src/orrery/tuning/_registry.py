"""Transforms by name, and as spec.json lists them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from orrery.errors import ModelFileError, UsageError
from orrery.schema.registry import Registry
from orrery.tuning._transform import Transform

KINDS: Registry[Transform] = Registry("transform", "orrery.tuning")
register, names = KINDS.register, KINDS.names


def load_transform(kind: Any) -> type[Transform]:
    """Return the transform of a kind.

    Raises:
        ModelFileError: there is none of this name.
    """
    if not isinstance(kind, str) or kind not in names():
        raise ModelFileError(f"no transform {str(kind)[:100]!r}", f"there are: {', '.join(names())}")
    return KINDS.find(kind)


def from_json(content: Any) -> tuple[Transform, ...]:
    """Return the transforms that spec.json lists, in their order.

    Raises:
        ModelFileError: an unknown kind or field, or a value that cannot be meant.
    """
    if not isinstance(content, Sequence) or not all(isinstance(item, Mapping) for item in content):
        raise ModelFileError("transforms is no list of objects", "it looks like [{'kind': 'lora', 'rank': 8}]")
    return tuple(_transform(f"transforms[{i}]", item) for i, item in enumerate(content))


def _transform(path: str, item: Mapping[str, Any]) -> Transform:
    cls = load_transform(item.get("kind"))
    known = {f.name for f in fields(cls)}
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in item.items() if key != "kind"}
    if unknown := sorted(given.keys() - known):
        raise ModelFileError(
            f"{path}: {cls.kind} has no field {', '.join(map(repr, unknown))}",
            f"known fields: {', '.join(sorted(known))}; was the file written by a newer version?",
        )
    try:
        return cls(**given)
    except (TypeError, UsageError) as error:
        raise ModelFileError(f"{path}: {error}", "get the file again from its source") from error
