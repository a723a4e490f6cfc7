"""Content in Anthropic's blocks: calls of tools, what these gave, and thoughts, as messages of OpenAI's form."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.text.chat.messages import Message

_CALL, _GIVEN, _THOUGHT = "tool_use", "tool_result", "thinking"


def unblocked(message: Message, before: Sequence[Message]) -> list[Message]:
    """Return a message as one or several: each result of a tool is one of its own, before what else is said.

    Args:
        message: its content may be a list of blocks; any other, and blocks of other kinds, stay as they are.
        before: the messages before it, whose calls name the tools of the results.
    """
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    calls = [block for block in blocks if block.get("type") == _CALL and {"name", "input"} <= set(block)]
    given = [block for block in blocks if block.get("type") == _GIVEN]
    thoughts = [block for block in blocks if block.get("type") == _THOUGHT and isinstance(block.get(_THOUGHT), str)]
    read = [*calls, *given, *thoughts]
    if not isinstance(content, list) or not read:
        return [message]
    rest = [block for block in content if not any(block is one for one in read)]
    own: dict[str, Any] = {name: value for name, value in message.items() if name != "content"}
    own |= {"content": rest} if rest else {}
    own |= {"tool_calls": [_called(call) for call in calls]} if calls else {}
    own |= {"reasoning_content": "\n\n".join(block[_THOUGHT] for block in thoughts)} if thoughts else {}
    names = {
        str(call.get("id")): call.get("function", {}).get("name")
        for one in before
        for call in one.get("tool_calls", ())
    }
    results = [_result(block, names) for block in given]
    return [*results, *([own] if rest or calls or thoughts else [])]


def _called(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": block.get("id"), "type": "function", "function": {"name": block["name"], "arguments": block["input"]}}


def _result(block: Mapping[str, Any], names: Mapping[Any, Any]) -> Message:
    """Return what a tool gave as its message; texts in a list are joined."""
    id, content = str(block.get("tool_use_id")), block.get("content", "")
    if isinstance(content, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in content
    ):
        content = "".join(each["text"] for each in content)
    return {"role": "tool", "tool_call_id": id, "name": names.get(id), "content": content}
