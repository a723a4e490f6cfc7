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

    Results are what the user says next: neighbours are one message, since many templates let turns alternate alone.

    Args:
        messages: the conversation.
        tools: as OpenAI describes them; where there are none, calls and results are said alone.
        system: whether the tools stand in the system's message, or before the first words of the user.
        calls: whether the template has a notation of its own for calls and results, which then stay what they are.
    """
    described = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools]
    asking = (_TOLD if calls else _TOLD + _NOTATION).format(tools="\n".join(described))
    turns = [dict(message) for message in messages] if calls else _turns(messages)
    if not tools:
        return turns
    if system and turns[0]["role"] in ("system", "developer"):
        return [_joined(turns[0], turns[0].get("content"), asking), *turns[1:]]
    if system:
        return [{"role": "system", "content": asking}, *turns]
    place = next((n for n, message in enumerate(turns) if message["role"] == "user"), 0)
    return [*turns[:place], _joined(turns[place], asking, turns[place].get("content")), *turns[place + 1 :]]


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation whose calls and results are text, each result joined with what the user says beside it."""
    turns: list[dict[str, Any]] = []
    results = False
    for message in messages:
        said = _in_words(message)
        if results and said["role"] == "user":
            turns[-1] = _joined(turns[-1], turns[-1]["content"], _text(said.get("content")))
        else:
            turns.append(said)
        results = message["role"] == "tool" or (results and said["role"] == "user")
    return turns


def _text(content: Any) -> str:
    """Return what a content says: a text, or the parts of one."""
    if isinstance(content, str) or not content:
        return content or ""
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def _joined(message: Mapping[str, Any], *parts: Any) -> dict[str, Any]:
    return {**message, "content": "\n\n".join(str(part) for part in parts if part)}


def _in_words(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose calls, or whose result, are text."""
    if message["role"] == "tool":
        said = _text(message.get("content"))
        return {"role": "user", "content": f"<tool_response>\n{said}\n</tool_response>"}
    calls = message.get("tool_calls") or []
    if not calls:
        return dict(message)
    plain = {name: value for name, value in message.items() if name != "tool_calls"}
    calls_in_words = [
        f"<tool_call>\n{json.dumps(_call(one['function']), ensure_ascii=False)}\n</tool_call>" for one in calls
    ]
    return _joined(plain, message.get("content"), *calls_in_words)


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "arguments": function["arguments"]}
