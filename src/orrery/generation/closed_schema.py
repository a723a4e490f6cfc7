"""JSON schemas with closed objects: an answer has the properties that are listed, and no others.

A schema that says nothing of other properties allows them, and a small model then goes on inventing some to the end of
its room. Whoever lists properties means these: so outlines reads a schema too. Every answer that is left follows the
schema as it was given. ``additionalProperties: true`` keeps an object open.
"""

from collections.abc import Iterator, Mapping
from typing import Any

DATA = ("const", "enum", "default", "examples")
"""Keywords whose values are data."""

NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
"""Keywords whose values have a schema under each name, whatever the name is."""

_TOGETHER = ("allOf", "anyOf", "oneOf", "$ref")
"""Keywords by which an object has properties that stand elsewhere."""
_ELSEWHERE = ("not", "if", "dependentSchemas", "unevaluatedProperties", "$dynamicRef", "$recursiveRef")
_OTHERS = ("additionalProperties", "patternProperties", "propertyNames", "minProperties")
"""Keywords that say themselves what other properties there may be."""


def closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose objects have no other properties than those that they list.

    One in which the properties of an object are put together from several parts is returned as it is: closed, the parts
    would forbid each other's.
    """
    return schema if any(map(_is_composed, _parts(schema))) else _closed(schema)


def _is_composed(part: Mapping[str, Any]) -> bool:
    several = "allOf" in part and not (isinstance(part["allOf"], list) and len(part["allOf"]) == 1)
    beside = "properties" in part and any(name in part for name in _TOGETHER)
    return several or beside or any(name in part for name in _ELSEWHERE)


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every schema within a schema, itself first."""
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, list | tuple):
            left.extend(part)
        elif isinstance(part, Mapping):
            yield part
            for key, value in part.items():
                if key in NAMED and isinstance(value, Mapping):
                    left.extend(value.values())
                elif key not in DATA:
                    left.append(value)


def _closed(part: Any) -> Any:
    if isinstance(part, list | tuple):
        return [_closed(one) for one in part]
    if not isinstance(part, Mapping):
        return part
    own: dict[str, Any] = {}
    for key, value in part.items():
        if key in NAMED and isinstance(value, Mapping):
            own[key] = {name: _closed(one) for name, one in value.items()}
        else:
            own[key] = value if key in DATA else _closed(value)
    if _lists_all(part):
        own["additionalProperties"] = False
    return own


def _lists_all(part: Mapping[str, Any]) -> bool:
    """Say whether a schema lists properties, the required ones among them, and leaves it there."""
    listed, required = part.get("properties"), part.get("required", ())
    if not isinstance(listed, Mapping) or not isinstance(required, list | tuple):
        return False
    return not any(key in part for key in _OTHERS) and all(name in listed for name in required)
