"""What a conversation may be: a list of messages, each with a known role and text."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.errors import DataError
from orrery.text.tokenizer import refuse_surrogates

Message = Mapping[str, Any]

# Closed: templates write the role into control tokens ("<|" + role + "|>"), so a free role could spell any of them.
ROLES = ("system", "developer", "user", "assistant", "tool")
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names under which services give an answer's reasoning; templates read the first, gpt-oss's the second."""


def checked_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages as templates read them: without null fields, the reasoning under each of its names.

    Raises `DataError` naming the message that is no object, has an unknown role, no text, or half a character in it.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise DataError(
            f"a conversation is a list of messages, not a {type(messages).__name__}",
            'give [{"role": "user", "content": "..."}]',
        )
    if not messages:
        raise DataError("the conversation has no message", 'give at least {"role": "user", "content": "..."}')
    return [_checked(message, place) for place, message in enumerate(messages)]


def _checked(message: Message, place: int) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise DataError(
            f"message {place} is a {type(message).__name__}, not an object", 'give {"role": "user", "content": "..."}'
        )
    check_leaves(message)
    # As transformers does: services answer "content": null beside tool calls, and templates would write "None".
    said = {name: value for name, value in message.items() if value is not None}
    role = said.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise DataError(f"message {place} has the role {role!r}", f"the roles are {', '.join(ROLES)}")
    if "content" not in said and role != "assistant":
        raise DataError(f"message {place} ({role}) has no content", 'give it "content": "..."')
    _check_shape(said, f"message {place} ({role})")
    thought = next((said[name] for name in REASONING if name in said), None)
    return said if thought is None else {"thinking": thought, **said, "reasoning_content": thought}


def _check_shape(message: Message, where: str) -> None:
    """Raise `DataError` for a content or tool calls of a kind that no template reads."""
    content, calls = message.get("content", ""), message.get("tool_calls", [])
    if isinstance(content, bool | int | float):
        raise DataError(f"{where} has a number for its content", "write it as text")
    if isinstance(content, list | tuple) and not all(isinstance(part, Mapping | str) for part in content):
        raise DataError(f"{where} has a content with a part that is no object", 'give {"type": "text", "text": "..."}')
    if not isinstance(calls, list | tuple) or not all(isinstance(call, Mapping) for call in calls):
        raise DataError(
            f"{where} has tool_calls that are no list of objects",
            'give [{"type": "function", "function": {"name": "...", "arguments": {}}}]',
        )


def check_leaves(value: Any, depth: int = 0) -> None:
    """Raise `DataError` for text that is no UTF-8, and for anything that is not plain JSON."""
    if depth > 64:
        raise DataError("the conversation is nested more than 64 levels deep", "flatten it")
    if isinstance(value, str):
        refuse_surrogates(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise DataError(f"a message holds the key {key!r}", "the keys of plain JSON are texts")
            check_leaves(key, depth + 1)
            check_leaves(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_leaves(inner, depth + 1)
    elif value is not None and not isinstance(value, bool | int | float):
        raise DataError(f"a message holds a {type(value).__name__}", "messages are plain JSON")


def read_conversation(file: Path, line: int = 1) -> tuple[list[Message], dict[str, Any]]:
    """Return the messages of a .json file or of one line (from 1) of a .jsonl file, and the tools and documents of it.

    Each is a list of messages or ``{"messages": [...], "tools": [...]}``. Raises `DataError` where it is neither.
    """
    try:
        content = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}", "give a .json or .jsonl file of messages") from None
    except ValueError as error:
        raise DataError(f"{file}: not UTF-8: {error}", "convert it to UTF-8") from None
    if file.suffix == ".jsonl":
        lines = content.removesuffix("\n").split("\n")
        if not 1 <= line <= len(lines):
            raise DataError(f"{file} has no line {line}", f"lines are counted from 1; it has {len(lines):,}")
        content = lines[line - 1]
    try:
        content_read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON: {error}", "a .jsonl file holds one conversation a line") from None
    messages = content_read.get("messages") if isinstance(content_read, dict) else content_read
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise DataError(f"{file}: no list of messages", 'give [{"role": "user", "content": "..."}]')
    beside = content_read if isinstance(content_read, dict) else {}
    return messages, {name: beside[name] for name in ("tools", "documents") if beside.get(name) is not None}


def text_of(message: Message) -> str:
    """Return the text of a message whose content is a string or a list of text parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise DataError("this chat format reads text only", 'give the content as a string or as {"text": "..."} parts')
    return "".join(text for text in texts if isinstance(text, str))
