"""Transforms by name: ``tuning/<kind>.py``, or a module that the user's own Python registered."""

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError, UsageError
from orrery.tuning._transform import Transform

_registered: dict[str, str] = {}


def names() -> list[str]:
    """Return the kinds of all transforms."""
    files = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}
    return sorted(files | set(_registered))


def register(path: str, kind: str | None = None) -> None:
    """Add a transform from a module of the user's own, by its import path; never called by a file or the environment.

    Args:
        path: dotted path of an importable module whose ``TRANSFORM`` is a ``Transform``.
        kind: its name in spec.json; by default the module's last name.
    """
    _registered[kind or path.rpartition(".")[2]] = path


def load_transform(kind: Any) -> type[Transform]:
    """Return the transform of a kind.

    Raises:
        ModelFileError: there is none of this name.
        UsageError: a registered module lacks it, or its transform has another name.
    """
    if not (isinstance(kind, str) and re.fullmatch(r"[a-z0-9_]+", kind) and kind in names()):
        raise ModelFileError(f"no transform {str(kind)[:100]!r}", f"there are: {', '.join(names())}")
    module = importlib.import_module(_registered.get(kind, f"{__package__}.{kind}"))
    found: type[Transform] | None = getattr(module, "TRANSFORM", None)
    if found is None or getattr(found, "kind", None) != kind:
        raise UsageError(f"the module of the transform {kind!r} has none of this kind", "see tuning/lora.py")
    return found


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
