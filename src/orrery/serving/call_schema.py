"""The JSON schema of an answer that must be a call of one of some functions."""

from collections.abc import Mapping
from typing import Any

from orrery.generation.closed_schema import DATA, NAMED

_WORDS = ("title", "description", "examples", "default", "$comment")
"""Keywords that tell a reader something, and nothing of what a value may be: the prompt holds them."""


def call_schema(functions: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return the schema of ``{"name": ..., "arguments": {...}}`` for functions by name, with their parameters."""
    several = len(functions) > 1
    calls = []
    for number, (name, parameters) in enumerate(functions.items()):
        place = f"#/anyOf/{number}/properties/arguments" if several else "#/properties/arguments"
        arguments = {"type": "object"} if not parameters else _moved(parameters, place)
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": name}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": calls} if several else calls[0]


def _moved(schema: Any, place: str) -> Any:
    """Return a schema without its descriptions, whose references to its own root point to where it stands now.

    A part with an ``$id`` is a root of its own, and an anchor is found wherever it stands.
    """
    if isinstance(schema, list):
        return [_moved(part, place) for part in schema]
    if not isinstance(schema, Mapping) or isinstance(schema.get("$id"), str):
        return schema
    moved: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _WORDS:
            continue
        if key in NAMED and isinstance(value, Mapping):
            moved[key] = {name: _moved(part, place) for name, part in value.items()}
        else:
            moved[key] = value if key in DATA else _moved(value, place)
    reference = schema.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        moved["$ref"] = place + reference[1:]
    return moved
