"""How models write calls of functions: each notation of published chat templates, read back.

A notation is one of four kinds: objects in JSON between two marks, a name before its arguments in JSON, a name and a
part for each argument, and calls as Python writes them. A model answers in the notation of its template; the marks
tell which it is, so no template has to be known.
"""

import ast
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.checkpoints import strict_json

NAME = r"[A-Za-z0-9_.-]{1,64}"
Functions = Mapping[str, Mapping[str, Any] | None]
"""The JSON schema of the parameters of each function, by its name."""
_DECODER = json.JSONDecoder()
_GIVEN = ("arguments", "parameters")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST = 100_000
"""Characters of calls in Python that are parsed."""


@dataclass(frozen=True)
class ParsedToolCall:
    """One call.

    Attributes:
        name: of the function.
        arguments: an object, as JSON.
        id: what the model itself calls the call, where its notation says so.
    """

    name: str
    arguments: str
    id: str | None = None


Calls = Sequence[ParsedToolCall | None]
"""Calls that were read; none for what stands where a call should, and is none."""


class Notation(ABC):
    """How calls are written.

    Attributes:
        mark: what they begin with.
        closes: whether their end is written, so that something may be said behind them.
    """

    mark: str
    closes: bool

    @abstractmethod
    def read(self, text: str, functions: Functions) -> tuple[Calls, int]:
        """Return the calls at the beginning of a text, which is the mark, and where they end."""


@final
@dataclass(frozen=True)
class _Objects(Notation):
    """Objects in JSON, or a list of them, between marks; the end may be missing where the text ends.

    Attributes:
        mark: before them.
        end: behind them; nothing where they end with the answer.
        keyed: whether an object has the name of the function for its key, and its arguments for the value.
    """

    mark: str
    end: str = ""
    keyed: bool = False

    @property
    def closes(self) -> bool:  # type: ignore[override]
        return bool(self.end)

    def read(self, text: str, functions: Functions) -> tuple[Calls, int]:
        calls: list[ParsedToolCall | None] = []
        place = 0
        while text.startswith(self.mark, place):
            before, known = place, len(calls)
            place = skip(text, place + len(self.mark))
            while place < len(text) and not (self.end and text.startswith(self.end, place)):
                value, place = read_json(text, place)
                several = value if isinstance(value, list) else [value]
                calls += [_of_key(one) if self.keyed else call_of(one) for one in several]
                if value is None or not self.end:
                    break
            torn = self.end and place < len(text) and not text.startswith(self.end, place)
            if torn or len(calls) == known:
                return [None], before
            place = skip(text, place + len(self.end))
        return calls, min(place, len(text))


@final
@dataclass(frozen=True)
class _Named(Notation):
    """A name before its arguments in JSON.

    Attributes:
        mark: before the first of them.
        head: matches what stands before the arguments; its groups are ``name``, and ``id`` where there is one.
        tail: matches what stands behind them.
        closes: see `Notation`.
    """

    mark: str
    head: re.Pattern[str]
    tail: re.Pattern[str] = re.compile(r"\s*")
    closes: bool = True

    def read(self, text: str, functions: Functions) -> tuple[Calls, int]:
        calls: list[ParsedToolCall | None] = []
        place = 0
        while found := self.head.match(text, place):
            value, place = read_json(text, found.end())
            said = found.groupdict()
            calls.append(call_of({"name": said["name"], "arguments": value}, said.get("id")))
            behind = self.tail.match(text, place)
            place = behind.end() if behind else place
        return calls or [None], place


@final
@dataclass(frozen=True)
class _Parts(Notation):
    """A name, and a part for each argument, whose text is read as the function's schema says.

    Attributes:
        mark: before the first of them.
        head: matches what stands before the arguments; its group is ``name``.
        part: matches an argument; its groups are ``key`` and ``value``, and ``text``, "true" where that is no JSON.
        tail: matches what stands behind them.
    """

    mark: str
    head: re.Pattern[str]
    part: re.Pattern[str]
    tail: re.Pattern[str]
    closes: bool = True

    def read(self, text: str, functions: Functions) -> tuple[Calls, int]:
        calls: list[ParsedToolCall | None] = []
        place = 0
        while found := self.head.match(text, place):
            place, given = found.end(), dict[str, Any]()
            while part := self.part.match(text, place):
                place, said = part.end(), part.groupdict()
                kind = _kind(functions, found["name"], said["key"])
                kind = {"true": "string", "false": None}.get(said.get("text") or "", kind)
                given[said["key"]] = _value_of(said["value"], kind)
            behind = self.tail.match(text, place)
            place = behind.end() if behind else place
            whole = behind is not None or place == len(text)
            calls.append(call_of({"name": found["name"], "arguments": given}) if whole else None)
        return calls or [None], place


@final
@dataclass(frozen=True)
class _Python(Notation):
    """Calls as Python writes them, with keywords and literals: ``[look(at="mat"), wait()]``, or one on each line.

    Attributes:
        mark: before them.
        end: behind them.
    """

    mark: str
    end: str
    closes: bool = True

    def read(self, text: str, functions: Functions) -> tuple[Calls, int]:
        place = text.find(self.end, len(self.mark))
        inside = text[len(self.mark) : len(text) if place < 0 else place].strip()
        return list(_written(inside)), len(text) if place < 0 else skip(text, place + len(self.end))


def _written(text: str) -> Iterator[ParsedToolCall | None]:
    try:
        body = ast.parse(text if len(text) <= _LONGEST else "").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = []
    for line in body or [ast.Pass()]:
        value = line.value if isinstance(line, ast.Expr) else None
        for one in value.elts if isinstance(value, ast.List) else [value]:
            yield _of_python(one)


def _of_python(call: ast.expr | None) -> ParsedToolCall | None:
    if not isinstance(call, ast.Call) or call.args or any(one.arg is None for one in call.keywords):
        return None
    try:
        given = {str(one.arg): ast.literal_eval(_Constants().visit(one.value)) for one in call.keywords}
        return call_of({"name": ast.unparse(call.func), "arguments": given})
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


@final
class _Constants(ast.NodeTransformer):
    """Reads JSON's three words as Python's, which some templates write instead."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_WORDS[node.id]) if node.id in _WORDS else node


def _kind(functions: Functions, name: str, key: str) -> Any:
    """Return the type that the schema of a function gives an argument."""
    properties = (functions.get(name) or {}).get("properties")
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    return schema.get("type") if isinstance(schema, Mapping) else None


def _value_of(text: str, kind: Any) -> Any:
    """Return the value of an argument: its text where it is one, else what JSON or Python reads in it."""
    if kind == "string":
        return text
    value = parsed(text)
    if value is not None or text.strip() == "null":
        return value
    try:
        literal = ast.literal_eval(text.strip()) if len(text) <= _LONGEST else text
        json.dumps(literal, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text
    return text if isinstance(literal, str) else literal


def read_json(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON value at a place and where the blanks behind it end; None and the place where there is none."""
    start = skip(text, place)
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None, start
    return parsed(text[start:end]), skip(text, end)


def skip(text: str, place: int) -> int:
    """Return the place of the next character that is no blank."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def parsed(text: str) -> Any:
    """Return the value that a text is in JSON; None where it is none."""
    try:
        return strict_json.parse(text.strip())
    except (ValueError, RecursionError):
        return None


def call_of(value: Any, id: str | None = None) -> ParsedToolCall | None:
    """Return the call that an object describes."""
    if not isinstance(value, dict):
        return None
    function: Any = value.get("function", value)
    function = function if isinstance(function, dict) else value
    name = function.get("name", function.get("tool_name"))
    given = function.get(_GIVEN[0], function.get(_GIVEN[1], {}))
    if isinstance(given, str):
        given = parsed(given)
    if not isinstance(name, str) or not re.fullmatch(NAME, name) or not isinstance(given, dict):
        return None
    own = value.get("id")
    return ParsedToolCall(
        name, json.dumps(given, ensure_ascii=False, allow_nan=False), id or (own if isinstance(own, str) else None)
    )


def _of_key(value: Any) -> ParsedToolCall | None:
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((name, given),) = value.items()
    return call_of({"name": name, "arguments": given})


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NAME", f"(?P<name>{NAME})"), re.DOTALL)


_DSML = "\uff5cDSML\uff5c"
_BEGUN, _ENDED = ("<\uff5ctool\u2581call" + f"{word}\uff5c>" for word in ("\u2581begin", "\u2581end"))
_CALLS, _DONE = ("<\uff5ctool\u2581calls" + f"{word}\uff5c>" for word in ("\u2581begin", "\u2581end"))
_SEP = "<\uff5ctool\u2581sep\uff5c>"


def _invoked(mark: str, end: str, before: str = "") -> _Parts:
    """Return MiniMax's and DeepSeek's notation: ``<invoke name="f"><parameter name="k">v</parameter></invoke>``."""
    return _Parts(
        mark,
        _pattern(rf'(?:{re.escape(mark)})?\s*<{before}invoke name="NAME">\s*'),
        _pattern(
            rf'<{before}parameter name="(?P<key>[^"]+)"(?: string="(?P<text>true|false)")?>'
            rf"(?P<value>.*?)</{before}parameter>\s*"
        ),
        _pattern(rf"</{before}invoke>\s*(?:{re.escape(end)}\s*)?"),
    )


def _tagged(mark: str, end: str) -> _Parts:
    """Return Qwen3-Coder's, Nemotron's and Seed's: ``<function=f><parameter=k>v</parameter></function>``."""
    return _Parts(
        mark,
        _pattern(rf"(?:{mark})?\s*<function=NAME>\s*"),
        _pattern(r"<parameter=(?P<key>[^>]+)>\n?(?P<value>.*?)\n?</parameter>\s*"),
        _pattern(rf"</function>\s*(?:{end}\s*)?"),
    )


NOTATIONS: tuple[Notation, ...] = (
    # Hermes, Qwen, SmolLM3, Granite 4 and many more.
    _Objects("<tool_call>", "</tool_call>"),
    _tagged("<tool_call>", "</tool_call>"),
    _tagged("<seed:tool_call>", "</seed:tool_call>"),
    # GLM-4.5, and those that follow it.
    _Parts(
        "<tool_call>",
        _pattern(r"<tool_call>\s*NAME\s*(?=<arg_key>|</tool_call>)"),
        _pattern(r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*"),
        _pattern(r"</tool_call>\s*"),
    ),
    # Mistral, of three times.
    _Named(
        "[TOOL_CALLS]",
        _pattern(r"\[TOOL_CALLS\]\s*NAME\s*(?:\[CALL_ID\](?P<id>[^\[\s]+)\s*)?\[ARGS\]\s*"),
        closes=False,
    ),
    _Objects("[TOOL_CALLS]"),
    # Functionary, and Llama 3.1 where it is told so.
    _Named("<function=", _pattern("<function=NAME>"), _pattern(r"\s*</function>\s*")),
    _tagged("<function=", "</tool_call>"),
    # DeepSeek V3 and R1 with a fence around the arguments, V3.1 without, V3.2 with a part for each.
    _Named(
        _CALLS,
        _pattern(rf"\s*(?:{_CALLS})?\s*{_BEGUN}(?:function{_SEP})?NAME\s*(?:{_SEP}|```json)?\s*"),
        _pattern(rf"\s*(?:```)?\s*{_ENDED}\s*(?:{_DONE})?\s*"),
    ),
    _invoked(f"<{_DSML}function_calls>", f"</{_DSML}function_calls>", _DSML),
    _invoked(f"<{_DSML}tool_calls>", f"</{_DSML}tool_calls>", _DSML),
    _invoked("<minimax:tool_call>", "</minimax:tool_call>"),
    # Kimi K2, which names its calls.
    _Named(
        "<|tool_calls_section_begin|>",
        _pattern(
            r"\s*(?:<\|tool_calls_section_begin\|>)?\s*<\|tool_call_begin\|>\s*"
            r"(?P<id>(?:functions\.)?NAME(?::\d+)?)\s*<\|tool_call_argument_begin\|>\s*"
        ),
        _pattern(r"\s*<\|tool_call_end\|>\s*(?:<\|tool_calls_section_end\|>)?\s*"),
    ),
    # Solar Open.
    _Named(
        "<|tool_calls|>",
        _pattern(
            r"(?:<\|tool_calls\|>)?<\|tool_call:begin\|>(?P<id>[^<]*)<\|tool_call:name\|>NAME<\|tool_call:args\|>\s*"
        ),
        _pattern(r"\s*<\|tool_call:end\|>\s*"),
    ),
    # Jamba, Apriel and MiniMax-M1; Nemotron 2; Command R; Granite 3 and Phi-4 mini; GigaChat.
    _Objects("<tool_calls>", "</tool_calls>"),
    _Objects("<TOOLCALL>", "</TOOLCALL>"),
    _Objects("<|START_ACTION|>", "<|END_ACTION|>"),
    _Objects("<|tool_call|>", "<|/tool_call|>"),
    _Objects("<|function_call|>"),
    # Llama 4.
    _Objects("<|python_start|>", "<|python_end|>"),
    # Apertus.
    _Objects("<|tools_prefix|>", "<|tools_suffix|>", keyed=True),
    # LFM2; OLMo 3.
    _Python("<|tool_call_start|>", "<|tool_call_end|>"),
    _Python("<function_calls>", "</function_calls>"),
    # MiniCPM.
    _Parts(
        '<function name="',
        _pattern(r'<function name="NAME">\s*'),
        _pattern(r'<param name="(?P<key>[^"]+)">(?P<value>.*?)</param>\s*'),
        _pattern(r"</function>\s*"),
    ),
)
"""Every notation that is read; of those with one mark the first that can read what stands there."""
