"""Tool calls in an answer: what the model wrote in its template's notation, parsed back."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.checkpoints import strict_json

MARKS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>")
"""What a call begins with: Hermes and Qwen, Mistral, Llama. Llama also writes a bare object."""
_END = "</tool_call>"
_NAMED = re.compile(r"([A-Za-z0-9_.-]+)\s*\[ARGS\]\s*")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DECODER = json.JSONDecoder()
_GIVEN = ("arguments", "parameters")
_ABOUT = {"name", "function", "type", "id", *_GIVEN}
"""Keys of an object that is a call and nothing else."""


@dataclass(frozen=True)
class ParsedToolCall:
    """One call.

    Attributes:
        name: of the function.
        arguments: an object, as JSON.
    """

    name: str
    arguments: str


def parse_calls(text: str, names: Collection[str]) -> tuple[str, list[ParsedToolCall]]:
    """Return what an answer says beside its calls, and the calls; what cannot be read as calls is said.

    Args:
        text: the answer, with the marks that calls begin with.
        names: of the functions that there are; nothing else is a call of one.
    """
    if text.lstrip().startswith("{") and (calls := _bare(text, names)):
        return "", calls
    place = first_mark(text, _behind_object(text))
    if place is None:
        return text, []
    said, rest = text[:place].rstrip(), text[place:]
    behind = ""
    if rest.startswith(MARKS[0]):
        parsed, behind = _tagged(rest)
    elif rest.startswith(MARKS[1]):
        parsed = _mistral(rest)
    else:
        parsed = list[ParsedToolCall | None](_bare(rest.removeprefix(MARKS[2]), names))
    calls = [call for call in parsed if call is not None]
    if not calls or len(calls) < len(parsed) or not {call.name for call in calls} <= set(names):
        return text, []
    return "\n".join(part for part in (said, behind) if part), calls


def first_mark(text: str, start: int = 0) -> int | None:
    """Return where the first call may begin by its mark."""
    places = [place for mark in MARKS if (place := text.find(mark, start)) >= 0]
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

    def finish(self) -> tuple[str, list[ParsedToolCall]]:
        """Return the rest of what is said, and the calls."""
        said, calls = self.whole()
        return said[self._shown :], calls

    def whole(self) -> tuple[str, list[ParsedToolCall]]:
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


def _tagged(text: str) -> tuple[list[ParsedToolCall | None], str]:
    """Return the calls of ``<tool_call>{...}</tool_call>``, the last end may be missing, and what is said behind."""
    calls: list[ParsedToolCall | None] = []
    place = 0
    while text.startswith(MARKS[0], place):
        value, end = _read(text, place + len(MARKS[0]))
        if value is None or not (text.startswith(_END, end) or end == len(text)):
            return [None], ""
        calls.append(_call(value))
        place = _skip(text, end + len(_END))
    return ([None], "") if MARKS[0] in text[place:] else (calls, text[place:].rstrip())


def _mistral(text: str) -> list[ParsedToolCall | None]:
    """Return the calls of ``[TOOL_CALLS][{...}]`` or of ``[TOOL_CALLS]name[ARGS]{...}``."""
    calls: list[ParsedToolCall | None] = []
    place = 0
    while text.startswith(MARKS[1], place):
        start = _skip(text, place + len(MARKS[1]))
        named = _NAMED.match(text, start)
        value, place = _read(text, named.end() if named else start)
        several = value if isinstance(value, list) and not named else [value]
        calls += [_call({"name": named[1], "arguments": one} if named else one) for one in several]
    return calls if place == len(text) else [None]


def _bare(text: str, names: Collection[str]) -> list[ParsedToolCall]:
    """Return the calls of objects with semicolons between them; nothing where one is none, or something else too.

    An object that has a name and no arguments is an answer: people ask for such.
    """
    calls: list[ParsedToolCall] = []
    place = _skip(text, 0)
    while place < len(text):
        value, place = _read(text, place)
        call = _call(value) if _is_call(value) else None
        if call is None or call.name not in names:
            return []
        calls.append(call)
        if place < len(text):
            if text[place] != ";":
                return []
            place = _skip(text, place + 1)
    return calls


def _is_call(value: Any) -> bool:
    """Say whether an object has what a call has, and no other key."""
    if not isinstance(value, dict) or not _ABOUT.issuperset(value):
        return False
    function = value.get("function")
    described = function if isinstance(function, dict) else value
    return any(key in described for key in _GIVEN)


def _behind_object(text: str) -> int:
    """Return where an object ends that opens a text: what stands in its strings is no mark."""
    start = _skip(text, 0)
    return _read(text, start)[1] if text.startswith("{", start) else 0


def _read(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON value at a place and where the blanks behind it end; None and the place where there is none."""
    start = _skip(text, place)
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None, start
    return _value(text[start:end]), _skip(text, end)


def _skip(text: str, place: int) -> int:
    """Return the place of the next character that is no blank."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _value(text: str) -> Any:
    try:
        return strict_json.parse(text.strip())
    except (ValueError, RecursionError):
        return None


def _call(value: Any) -> ParsedToolCall | None:
    """Return the call that an object describes."""
    if not isinstance(value, dict):
        return None
    function: Any = value.get("function", value)
    function = function if isinstance(function, dict) else value
    name, given = function.get("name"), function.get(_GIVEN[0], function.get(_GIVEN[1], {}))
    if isinstance(given, str):
        given = _value(given)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(given, dict):
        return None
    return ParsedToolCall(name, json.dumps(given, ensure_ascii=False))


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
