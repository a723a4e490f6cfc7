"""Tool calls in an answer: what the model wrote in its template's notation, parsed back."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from orrery.text.chat.notations import NOTATIONS, Calls, Functions, ParsedToolCall, call_of, parsed, read_json, skip

_OBJECT = "<|python_tag|>"
"""What Llama may write before an object that is a call; it also writes the bare object."""
MARKS = tuple(dict.fromkeys((*(notation.mark for notation in NOTATIONS), _OBJECT)))
"""What a call begins with."""
_LONGEST = max(map(len, MARKS))
_BEGINNINGS = frozenset(mark[:length] for mark in MARKS for length in range(1, len(mark)))
_GIVEN = ("arguments", "parameters")
_ABOUT = {"name", "function", "type", "id", *_GIVEN}
"""Keys of an object that is a call and nothing else."""


def parse_calls(text: str, functions: Functions) -> tuple[str, list[ParsedToolCall]]:
    """Return what an answer says beside its calls, and the calls; what cannot be read as calls is said.

    Args:
        text: the answer, with the marks that calls begin with.
        functions: those that there are, with their parameters; nothing else is a call of one.
    """
    if text.lstrip().startswith("{") and (calls := _bare(text, functions)):
        return "", calls
    place = first_mark(text, _behind_object(text))
    if place is None:
        return text, []
    said, rest = text[:place].rstrip(), text[place:]
    if rest.startswith(_OBJECT):
        calls = _bare(rest.removeprefix(_OBJECT), functions)
        return (said, calls) if calls else (text, [])
    for notation in NOTATIONS:
        if rest.startswith(notation.mark):
            read, end = notation.read(rest, functions)
            behind = rest[end:].rstrip()
            if (known := _known(read, functions)) and first_mark(behind) is None and (notation.closes or not behind):
                return "\n".join(part for part in (said, behind) if part), known
    return text, []


def _known(calls: Calls, functions: Functions) -> list[ParsedToolCall]:
    """Return the calls, where all are calls of functions that there are."""
    known = [call for call in calls if call is not None and call.name in functions]
    return known if len(known) == len(calls) else []


def first_mark(text: str, start: int = 0) -> int | None:
    """Return where the first call may begin by its mark."""
    places = [place for mark in MARKS if (place := text.find(mark, start)) >= 0]
    return min(places, default=None)


@final
class CallWatch:
    """The text of an answer while it is streamed: what cannot be a part of a call is shown at once."""

    def __init__(self, functions: Functions) -> None:
        self._functions, self._text, self._shown = functions, "", 0
        self._sought = 0  # before it no mark begins

    def push(self, piece: str) -> str:
        """Return what of the answer is certain to be said."""
        self._text += piece
        if not self._text.strip() or self._text.lstrip().startswith("{"):
            return ""
        place = first_mark(self._text, self._sought)
        self._sought = max(0, len(self._text) - _LONGEST) if place is None else place
        return self._show(self._certain() if place is None else len(self._text[:place].rstrip()))

    def finish(self) -> tuple[str, list[ParsedToolCall]]:
        """Return the rest of what is said, and the calls."""
        said, calls = self.whole()
        return said[self._shown :], calls

    def whole(self) -> tuple[str, list[ParsedToolCall]]:
        """Return all that is said, and the calls."""
        return parse_calls(self._text, self._functions)

    def _show(self, end: int) -> str:
        piece = self._text[self._shown : end]
        self._shown = max(self._shown, end)
        return piece

    def _certain(self) -> int:
        """Return the length of the text without an end that may begin a mark, and without blanks before such an end."""
        for length in range(min(_LONGEST - 1, len(self._text)), 0, -1):
            if self._text[-length:] in _BEGINNINGS:
                return len(self._text[:-length].rstrip())
        return len(self._text.rstrip())


def _bare(text: str, functions: Functions) -> list[ParsedToolCall]:
    """Return the calls of objects with semicolons between them; nothing where one is none, or something else too.

    An object that has a name and no arguments is an answer: people ask for such.
    """
    calls: list[ParsedToolCall] = []
    place = skip(text, 0)
    while place < len(text):
        value, place = read_json(text, place)
        call = call_of(value) if _is_call(value) else None
        if call is None or call.name not in functions:
            return []
        calls.append(call)
        if place < len(text):
            if text[place] != ";":
                return []
            place = skip(text, place + 1)
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
    start = skip(text, 0)
    return read_json(text, start)[1] if text.startswith("{", start) else 0


def with_objects(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose calls have objects for arguments, as templates read them; clients send JSON in a text."""
    return _with_calls(messages, _with_object)


def with_texts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose calls have JSON in a text for arguments, as some templates read them."""
    return _with_calls(messages, _with_text)


def _with_calls(
    messages: Sequence[Mapping[str, Any]], change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> list[dict[str, Any]]:
    calls = [[change(call) for call in message.get("tool_calls") or ()] for message in messages]
    return [{**message, **({"tool_calls": own} if own else {})} for message, own in zip(messages, calls, strict=True)]


def with_short_ids(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose calls are named by nine letters and digits, results as their calls."""
    known: dict[str, str] = {}

    def short(id: Any) -> str:
        return known.setdefault(str(id), f"c{len(known):08d}")

    renamed: list[dict[str, Any]] = []
    for message in messages:
        own = dict(message)
        if own.get("tool_calls"):
            own["tool_calls"] = [{**call, "id": short(call.get("id"))} for call in own["tool_calls"]]
        if "tool_call_id" in own:
            own["tool_call_id"] = short(own["tool_call_id"])
        renamed.append(own)
    return renamed


def with_descriptions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return tools of which each has a description, an empty one where there is none."""
    return [
        {**tool, "function": {"description": "", **tool["function"]}}
        if isinstance(tool.get("function"), Mapping)
        else {"description": "", **tool}
        for tool in tools
    ]


def arguments_of(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call."""
    function = call.get("function", call)
    return function.get("arguments") if isinstance(function, Mapping) else None


def _with_text(call: Mapping[str, Any]) -> dict[str, Any]:
    given = arguments_of(call)
    if not isinstance(given, dict):
        return dict(call)
    said = {"arguments": json.dumps(given, ensure_ascii=False)}
    return {**call, "function": {**call["function"], **said}} if "function" in call else {**call, **said}


def _with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    value = parsed(function["arguments"]) if isinstance(function["arguments"], str) else function["arguments"]
    return {**call, "function": {**function, "arguments": value if isinstance(value, dict) else function["arguments"]}}
