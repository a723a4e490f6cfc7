"""Tools in words, for templates that have no place for them: the notation of Hermes, which many models were taught."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_TOLD = """You may call one or more of these functions, each described by a JSON schema of its parameters:
<tools>
{tools}
</tools>"""
_NOTATION = """
To call one, write nothing but an object with its name and its arguments between these marks, once for each call:
<tool_call>
{{"name": "...", "arguments": {{...}}}}
</tool_call>"""


def in_words(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], system: bool, calls: bool
) -> list[dict[str, Any]]:
    """Return a conversation that says its tools as ordinary text, and its calls and results too.

    Args:
        messages: the conversation.
        tools: as OpenAI describes them.
        system: whether the tools stand in the system's message, or before the first words of the user.
        calls: whether the template has a notation of its own for calls and results, which then stay what they are.
    """
    described = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools]
    asking = (_TOLD if calls else _TOLD + _NOTATION).format(tools="\n".join(described))
    found = [dict(message) if calls else _in_words(message) for message in messages]
    if system and found[0]["role"] == "system":
        return [_joined(found[0], found[0].get("content"), asking), *found[1:]]
    if system:
        return [{"role": "system", "content": asking}, *found]
    place = next((n for n, message in enumerate(found) if message["role"] == "user"), 0)
    return [*found[:place], _joined(found[place], asking, found[place].get("content")), *found[place + 1 :]]


def _joined(message: Mapping[str, Any], *parts: Any) -> dict[str, Any]:
    return {**message, "content": "\n\n".join(str(part) for part in parts if part)}


def _in_words(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose calls, or whose result, are text."""
    if message["role"] == "tool":
        said = message.get("content") or ""
        return {"role": "user", "content": f"<tool_response>\n{said}\n</tool_response>"}
    calls = message.get("tool_calls") or []
    if not calls:
        return dict(message)
    plain = {name: value for name, value in message.items() if name != "tool_calls"}
    written = [f"<tool_call>\n{json.dumps(_call(one['function']), ensure_ascii=False)}\n</tool_call>" for one in calls]
    return _joined(plain, message.get("content"), *written)


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "arguments": function["arguments"]}
