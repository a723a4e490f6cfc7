"""Tool calls in an answer: what the model wrote in its template's notation, parsed back."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.checkpoints import strict_json

MARKS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>")
"""What a call begins with: Hermes and Qwen, Mistral, Llama. Llama also writes a bare object."""
_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_NAMED = re.compile(r"\[TOOL_CALLS\]\s*([A-Za-z0-9_.-]+)\s*\[ARGS\]\s*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        name: of the function.
        arguments: an object, as JSON.
    """

    name: str
    arguments: str


def parse_calls(text: str, names: Collection[str]) -> tuple[str, list[Call]]:
    """Return what an answer says beside its calls, and the calls; what cannot be read as calls is said.

    Args:
        text: the answer, with the marks that calls begin with.
        names: of the functions that there are; a bare object is a call of one of these alone.
    """
    place = first_mark(text)
    if place is None:
        calls = [] if not text.lstrip().startswith("{") else _bare(text, names)
        return ("", calls) if calls else (text, [])
    said, rest = text[:place], text[place:]
    if rest.startswith(MARKS[0]):
        found = [_call(_value(part)) for part in _TAGGED.findall(rest)]
    elif rest.startswith(MARKS[1]):
        found = _mistral(rest)
    else:
        found = list[Call | None](_bare(rest.removeprefix(MARKS[2]), names))
    calls = [call for call in found if call is not None]
    return (said.rstrip(), calls) if calls and len(calls) == len(found) else (text, [])


def first_mark(text: str) -> int | None:
    """Return where the first call may begin by its mark."""
    places = [place for mark in MARKS if (place := text.find(mark)) >= 0]
    return min(places, default=None)


@final
class CallWatch:
    """The text of an answer while it is streamed: what cannot be a part of a call is shown at once."""

    def __init__(self, names: Collection[str]) -> None:
        self._names, self._text, self._shown = names, "", 0

    def push(self, piece: str) -> str:
        """Return what of the answer is certain to be said."""
        self._text += piece
        if not self._text.strip() or self._text.lstrip().startswith("{"):
            return ""
        place = first_mark(self._text)
        return self._show(self._certain() if place is None else len(self._text[:place].rstrip()))

    def finish(self) -> tuple[str, list[Call]]:
        """Return the rest of what is said, and the calls."""
        said, calls = self.whole()
        return said[self._shown :], calls

    def whole(self) -> tuple[str, list[Call]]:
        """Return all that is said, and the calls."""
        return parse_calls(self._text, self._names)

    def _show(self, end: int) -> str:
        piece = self._text[self._shown : end]
        self._shown = max(self._shown, end)
        return piece

    def _certain(self) -> int:
        """Return the length of the text without an end that may begin a mark, and without blanks before such an end."""
        for mark in MARKS:
            for length in range(min(len(mark) - 1, len(self._text)), 0, -1):
                if self._text.endswith(mark[:length]):
                    return len(self._text[:-length].rstrip())
        return len(self._text.rstrip())


def _mistral(text: str) -> list[Call | None]:
    """Return the calls of ``[TOOL_CALLS][{...}]`` or of ``[TOOL_CALLS]name[ARGS]{...}``."""
    named = list(_NAMED.finditer(text))
    if named:
        ends = [*(found.start() for found in named[1:]), len(text)]
        parts = [(found[1], _value(text[found.end() : end])) for found, end in zip(named, ends, strict=True)]
        return [_call({"name": name, "arguments": value}) for name, value in parts]
    value = _value(text.removeprefix(MARKS[1]))
    return [_call(one) for one in value] if isinstance(value, list) else [_call(value)]


def _bare(text: str, names: Collection[str]) -> list[Call]:
    """Return the calls of objects with semicolons between them; nothing where one is none."""
    whole = _value(text)
    values = [whole] if whole is not None else [_value(part) for part in re.split(r";\s*(?=\{)", text)]
    found = [_call(value) for value in values]
    sound = [call for call in found if call is not None and call.name in names]
    return sound if len(sound) == len(found) else []


def _value(text: str) -> Any:
    try:
        return strict_json.parse(text.strip())
    except (ValueError, RecursionError):
        return None


def _call(value: Any) -> Call | None:
    """Return the call that an object describes."""
    if not isinstance(value, dict):
        return None
    function: Any = value.get("function", value)
    function = function if isinstance(function, dict) else value
    name, given = function.get("name"), function.get("arguments", function.get("parameters", {}))
    if isinstance(given, str):
        given = _value(given)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(given, dict):
        return None
    return Call(name, json.dumps(given, ensure_ascii=False))


def with_objects(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose calls have objects for arguments, as templates read them; clients send JSON in a text."""
    return [
        {**message, "tool_calls": [_with_object(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in messages
    ]


def _with_object(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    value = _value(function["arguments"]) if isinstance(function["arguments"], str) else function["arguments"]
    return {**call, "function": {**function, "arguments": value if isinstance(value, dict) else function["arguments"]}}
