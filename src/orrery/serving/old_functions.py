"""The old form of tools, which clients still send: ``functions``, ``function_call``, messages of role ``function``."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.text.chat.calls import ParsedToolCall


def with_tool_calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation in the form that templates know: calls with ids, and answers that name them.

    An answer of a function belongs to the last call of its name.
    """
    calls: dict[str, str] = {}
    converted = []
    for place, message in enumerate(messages):
        own = dict(message)
        called = own.pop("function_call", None)
        if called is not None:
            calls[called["name"]] = _id(place)
            own["tool_calls"] = [{"id": _id(place), "type": "function", "function": called}]
        if own["role"] == "function":
            own |= {"role": "tool", "tool_call_id": calls.get(own["name"], _id(place))}
        converted.append(own)
    return converted


def told(call: ParsedToolCall) -> dict[str, str]:
    """Return a call as old clients read it."""
    return {"name": call.name, "arguments": call.arguments}


def _id(place: int) -> str:
    """Return the id of the call in a message: nine letters and digits, as Mistral's template demands."""
    return f"call{place:05d}"
