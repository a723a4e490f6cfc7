"""The names of classes that the library `datasets` writes into a Parquet file beside their numbers."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from orrery.data.files import bad_record

Naming = Callable[[Any, str], Any]
"""Gives the value of a row its names; the second argument is its place, for errors."""

KEY = b"huggingface"
"""Of the file's metadata, under which the library describes its columns."""
UNLABELLED = -1
"""The number that the library writes where a row has no label, as in test sets."""


def namings(metadata: Mapping[bytes, bytes] | None) -> dict[str, Naming]:
    """Return what gives names to the numbers of columns, by column; nothing for columns without such numbers."""
    try:
        features = json.loads((metadata or {})[KEY])["info"]["features"]
        return {name: naming for name, feature in features.items() if (naming := _naming(feature)) is not None}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return {}  # another program's metadata: the numbers are what the file says


def _naming(feature: Any) -> Naming | None:
    """Return what names the numbers of a feature: a class, a list of features, or several by name."""
    if isinstance(feature, list):
        return _listed(_naming(feature[0])) if len(feature) == 1 else None
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        known = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
        return _named(names) if known else None  # type: ignore[arg-type]
    if "feature" in feature and "_type" in feature:
        return _listed(_naming(feature["feature"]))
    inner = {name: naming for name, part in feature.items() if (naming := _naming(part)) is not None}
    return _of_parts(inner) if inner else None


def _named(names: list[str]) -> Naming:
    def name(value: Any, where: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if value == UNLABELLED:
            return None
        if not 0 <= value < len(names):
            raise bad_record(where, f"{value} is none of the {len(names)} classes")
        return names[value]

    return name


def _listed(inner: Naming | None) -> Naming | None:
    if inner is None:
        return None

    def name(value: Any, where: str) -> Any:
        return [inner(item, where) for item in value] if isinstance(value, list | tuple) else inner(value, where)

    return name


def _of_parts(inner: Mapping[str, Naming]) -> Naming:
    """Return what names the parts of a struct; a list of structs may be written as a struct of lists."""

    def name(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: _part(inner[key], item, where) if key in inner else item for key, item in value.items()}

    return name


def _part(naming: Naming, value: Any, where: str) -> Any:
    return [naming(each, where) for each in value] if isinstance(value, list | tuple) else naming(value, where)
