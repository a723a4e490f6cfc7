"""From the items of a response's input to the messages of a chat."""

from collections.abc import Sequence
from typing import Any

from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import Message, check_address
from orrery.serving.schema.responses import ItemPart, ResponseItem

_TEXTS = ("input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text")
"""The parts that are read."""
PICTURE = "input_image"


def messages_of(given: str | Sequence[ResponseItem], earlier: Sequence[Message]) -> list[Message]:
    """Return the messages that items say, behind those of an earlier response.

    Calls that follow each other, or what the assistant says before them, are one message, and so is its reasoning.

    Raises:
        ApiError: an item that cannot be read, named by its place.
    """
    if isinstance(given, str):
        return [Message.model_validate({"role": "user", "content": given})]
    messages = _Told(earlier)
    for place, item in enumerate(given):
        messages.take(item, f"input[{place}]")
    return messages.messages()


class _Told:
    """The messages while items are read."""

    def __init__(self, earlier: Sequence[Message]) -> None:
        self._messages: list[dict[str, Any]] = []
        self._thought: str | None = None
        calls = [call for message in earlier for call in message.tool_calls or ()]
        self._called = {call.id: call.function.name for call in calls}

    def messages(self) -> list[Message]:
        """Return what was said; reasoning that nothing follows is left out, as nothing was said."""
        return [Message.model_validate(message) for message in self._messages]

    def take(self, item: ResponseItem, where: str) -> None:
        """Take one item."""
        readers = {
            "message": self._message,
            "function_call": self._call,
            "function_call_output": self._result,
            "reasoning": self._reasoning,
        }
        if item.type not in readers:
            reason = f"an item of type {item.type[:40]!r}: this server reads {', '.join(readers)}"
            raise ApiError(400, reason, param=where, code="unsupported_content")
        readers[item.type](item, where)

    def _message(self, item: ResponseItem, where: str) -> None:
        if item.role is None:
            raise ApiError(400, "a message has a role", param=f"{where}.role")
        if item.content is None:
            raise ApiError(400, f"a message of {item.role} needs a content", param=f"{where}.content")
        self._add({"role": item.role, "content": _content(item.content, f"{where}.content")})

    def _call(self, item: ResponseItem, where: str) -> None:
        for name in ("call_id", "name", "arguments"):
            if getattr(item, name) is None:
                raise ApiError(400, f"a function_call needs its {name}", param=f"{where}.{name}")
        assert item.call_id is not None
        assert item.name is not None
        self._called[item.call_id] = item.name
        function = {"name": item.name, "arguments": item.arguments}
        if not self._messages or self._messages[-1]["role"] != "assistant" or self._thought is not None:
            self._add({"role": "assistant", "content": None})
        calls = self._messages[-1].setdefault("tool_calls", [])
        calls.append({"id": item.call_id, "type": "function", "function": function})

    def _result(self, item: ResponseItem, where: str) -> None:
        if item.call_id is None or item.call_id not in self._called:
            raise ApiError(400, "no function_call with this call_id stands before its result", param=f"{where}.call_id")
        if item.output is None:
            raise ApiError(400, "a function_call_output needs an output", param=f"{where}.output")
        said = _text(item.output, f"{where}.output")
        named = {"name": self._called[item.call_id], "tool_call_id": item.call_id}
        self._add({"role": "tool", "content": said, **named})

    def _reasoning(self, item: ResponseItem, where: str) -> None:
        if item.encrypted_content is not None and not item.content:
            reason = "this reasoning is encrypted by another server; leave the item out"
            raise ApiError(400, reason, param=f"{where}.encrypted_content", code="unsupported_content")
        self._thought = (self._thought or "") + _text(item.content or "", f"{where}.content")

    def _add(self, message: dict[str, Any]) -> None:
        if self._thought and message["role"] == "assistant":
            message["reasoning_content"] = self._thought
        self._thought = None
        self._messages.append(message)


def _content(content: str | Sequence[ItemPart], where: str) -> Any:
    """Return what a content says as a chat has it: a text, or parts where there are pictures; errors as in ``_text``.

    Raises:
        ApiError: a picture is neither its content nor an address, such as a file that was uploaded.
    """
    if isinstance(content, str) or not any(part.type == PICTURE for part in content):
        return _text(content, where)
    found: list[dict[str, Any]] = []
    for place, part in enumerate(content):
        if part.type != PICTURE:
            found.append({"type": "text", "text": _text_of(part, f"{where}[{place}]")})
        elif part.image_url is None:
            reason = "a picture is sent as image_url, its content: data:image/png;base64,...; no files are kept"
            raise ApiError(400, reason, param=f"{where}[{place}]", code="unsupported_content")
        else:
            check_address(part.image_url, f"{where}[{place}]")
            found.append({"type": "image_url", "image_url": {"url": part.image_url}})
    return found


def _text(content: str | Sequence[ItemPart], where: str) -> str:
    """Return what the parts of a content say.

    Raises:
        ApiError: one is no text.
    """
    if isinstance(content, str):
        return content
    return "".join(_text_of(part, f"{where}[{place}]") for place, part in enumerate(content))


def _text_of(part: ItemPart, where: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text
    if part.type not in _TEXTS or text is None:
        reason = f"a part of type {part.type[:40]!r}: this server reads parts of text, and pictures of a user"
        raise ApiError(400, reason, param=where, code="unsupported_content")
    return text
