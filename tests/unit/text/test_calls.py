import json

import pytest

from orrery.text.chat.calls import CallWatch, ParsedToolCall, parse_calls, with_objects

ULM = ParsedToolCall("weather", '{"city": "Ulm"}')
BONN = ParsedToolCall("weather", '{"city": "Bonn"}')
NAMES = {"weather": None}
IN_ULM, IN_BONN = '{"city": "Ulm"}', '{"city": "Bonn"}'


def arguments(city, key="arguments"):
    return f'{{"name": "weather", "{key}": {city}}}'


WRITTEN = {
    "hermes": (f"<tool_call>\n{arguments(IN_ULM)}\n</tool_call>", [ULM]),
    "hermes, two": (
        f"<tool_call>{arguments(IN_ULM)}</tool_call>\n<tool_call>{arguments(IN_BONN)}</tool_call>",
        [ULM, BONN],
    ),
    "hermes, its end cut off": (f"<tool_call>\n{arguments(IN_ULM)}", [ULM]),
    "mistral": (f"[TOOL_CALLS] [{arguments(IN_ULM)}]", [ULM]),
    "mistral, newer": (f"[TOOL_CALLS]weather[ARGS]{IN_ULM}[TOOL_CALLS]weather[ARGS]{IN_BONN}", [ULM, BONN]),
    "llama": (arguments(IN_ULM, "parameters"), [ULM]),
    "llama, two": (
        f"<|python_tag|>{arguments(IN_ULM, 'parameters')}; {arguments(IN_BONN, 'parameters')}",
        [ULM, BONN],
    ),
    "a function inside": (
        f'<tool_call>{{"function": {arguments(json.dumps(IN_ULM))}}}</tool_call>',
        [ULM],
    ),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_calls_are_read_in_every_notation(kind):
    text, calls = WRITTEN[kind]
    assert parse_calls(text, NAMES) == ("", calls)


def test_what_stands_before_a_call_is_said():
    text, calls = WRITTEN["hermes"]
    assert parse_calls(f"Let me see.\n\n{text}", NAMES) == ("Let me see.", calls)


@pytest.mark.parametrize(
    "text",
    [
        "It rains.",
        "",
        "<tool_call>It rains.</tool_call>",
        '<tool_call>{"name": "weather"',
        '<tool_call>{"name": "two words", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "weather", "arguments": [1]}</tool_call>',
        '{"name": "other", "parameters": {}}',
        '{"answer": 3}',
        "[TOOL_CALLS]3",
        '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
        f"<tool_call>{arguments(IN_ULM)}</tool_call>" + '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
        "[TOOL_CALLS]other[ARGS]{}",
        "<|tool_call_start|>[weather(city=1e999)]<|tool_call_end|>",
        "{" * 5_000,
    ],
)
def test_what_is_no_call_is_said(text):
    assert parse_calls(text, NAMES) == (text, [])


SPOKEN = (
    "end it with </tool_call> please", "what does <tool_call> mean?", "see [TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]{}",
    "<|python_tag|>", "a; {b}", '"; {"name": "weather"}', "}", "\\", "</tool_call>\n<tool_call>{}", "[ARGS]", "]",
)  # fmt: skip
"""What people write into arguments, and models about their own marks."""


@pytest.mark.parametrize("word", SPOKEN)
@pytest.mark.parametrize("kind", WRITTEN)
def test_a_mark_inside_a_text_is_a_part_of_that_text(kind, word):
    text, calls = WRITTEN[kind]
    inner = json.dumps(word)[1:-1]
    inner = json.dumps(inner)[1:-1] if kind == "a function inside" else inner
    expected = [ParsedToolCall("weather", call.arguments.replace("Ulm", json.dumps(word)[1:-1])) for call in calls]
    written = text.replace("Ulm", inner)
    assert parse_calls(written, NAMES) == ("", expected)
    watch = CallWatch(NAMES)
    assert "".join(watch.push(letter) for letter in written) == ""
    assert watch.finish() == ("", expected)


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "weather", "age": 3, "city": "Rome"}',
        '{"name": "weather"}',
        '{"name": "weather", "id": 3}',
        '{"function": {"name": "weather"}, "lines": 12}',
        '{"function": {"name": "weather", "arguments": {}}, "lines": 12}',
        '{"name": "weather", "arguments": {}, "city": "Rome"}',
        '{"name": "weather", "parameters": {}} is what I would call',
        '{"name": "weather", "arguments": {}}, {"name": "weather", "arguments": {}}',
        '{"name": "weather", "arguments": {}}; {"name": "weather"}',
        '{"people": [{"name": "weather", "arguments": {}}]}',
        '{"text": "<tool_call>{\\"name\\": \\"weather\\"}</tool_call>"}',
        '{"mark": "[TOOL_CALLS]"}',
    ],
)
def test_an_answer_in_json_is_no_call(answer):
    assert parse_calls(answer, NAMES) == (answer, [])


def test_what_stands_behind_calls_is_said_too():
    text, calls = WRITTEN["hermes, two"]
    assert parse_calls(f"So:\n{text}\nI wait.", NAMES) == ("So:\nI wait.", calls)
    assert parse_calls(f'{{"a": 1}} {text}', NAMES) == ('{"a": 1}', calls)
    for torn in (f"{text} <tool_call>", f"{WRITTEN['mistral'][0]} and more", f"{WRITTEN['llama, two'][0]} and more"):
        assert parse_calls(torn, NAMES) == (torn, [])


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("before", ["", "Let me see: 3 < 4 [or so]. "])
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_stream_says_what_the_whole_says(kind, before, size):
    text = before + WRITTEN[kind][0]
    watch = CallWatch(NAMES)
    said = "".join(watch.push(text[place : place + size]) for place in range(0, len(text), size))
    rest, calls = watch.finish()
    assert (said + rest, calls) == parse_calls(text, NAMES)


def test_words_are_shown_while_they_come():
    watch = CallWatch(NAMES)
    assert watch.push("It rains") == "It rains"
    assert watch.push(" in Ulm. <too") == " in Ulm."
    assert watch.push("lbox>") == " <toolbox>"
    assert watch.finish() == ("", [])


def test_arguments_become_objects_where_they_are_such():
    def message(given):
        return {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": given}}]}

    for given, wanted in ((json.dumps({"a": 1}), {"a": 1}), ("no json", "no json"), ("[1]", "[1]")):
        (converted,) = with_objects([message(given)])
        assert converted["tool_calls"][0]["function"]["arguments"] == wanted
    assert with_objects([{"role": "user", "content": "a"}]) == [{"role": "user", "content": "a"}]
