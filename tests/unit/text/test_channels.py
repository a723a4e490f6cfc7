"""Answers in channels, as gpt-oss writes them, and the calls of functions in each notation of published templates."""

import json
from typing import Any

import pytest

from chat_published import published, tokenizer_of
from orrery.text.chat.calls import CallWatch, parse_calls
from orrery.text.chat.channels import MARKS, ChannelWatch, has_channels
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.render import ChatTemplate

THOUGHT = "<|channel|>analysis<|message|>The user asks.\nI think.<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>It rains."
CALL = (
    '<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Ulm"}<|call|>'
)
OLDER = '<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{"city": "Ulm"}<|call|>'
PREAMBLE = "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
ULM = '<tool_call>{"name": "weather", "arguments": {"city": "Ulm"}}</tool_call>'
ANSWERS = {
    "thought and said": (THOUGHT + FINAL + "<|return|>", ("The user asks.\nI think.", "It rains.")),
    "its end cut off": (THOUGHT + FINAL, ("The user asks.\nI think.", "It rains.")),
    "thought alone": (THOUGHT[: -len("<|end|>")], ("The user asks.\nI think.", "")),
    "said alone": ("<|channel|>final<|message|>It rains.<|return|>", ("", "It rains.")),
    "a call": (THOUGHT + CALL, ("The user asks.\nI think.", ULM)),
    "a call, its receiver first": (THOUGHT + OLDER, ("The user asks.\nI think.", ULM)),
    "words before a call": (THOUGHT + PREAMBLE + CALL, ("The user asks.\nI think.", "Let me look." + ULM)),
    "no channels at all": ("It rains.", ("", "It rains.")),
    "thought twice": (
        THOUGHT + "<|start|>assistant" + THOUGHT + FINAL,
        ("The user asks.\nI think.\nThe user asks.\nI think.", "It rains."),
    ),
}


def pieces(text: str) -> list[str]:
    """Return a text letter by letter, and its marks whole, as tokens come."""
    found: list[str] = []
    while text:
        mark = next((mark for mark in MARKS if text.startswith(mark)), text[0])
        found.append(mark)
        text = text[len(mark) :]
    return found


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_in_channels_is_parted_as_it_comes(kind: str) -> None:
    text, expected = ANSWERS[kind]
    whole, stream = ChannelWatch(), ChannelWatch()
    told = [whole.push(text), whole.finish()]
    assert ("".join(one for one, _ in told), "".join(other for _, other in told)) == expected == whole.whole
    came = [*(stream.push(piece) for piece in pieces(text)), stream.finish()]
    assert ("".join(one for one, _ in came), "".join(other for _, other in came)) == expected


def test_words_are_told_while_they_come() -> None:
    watch = ChannelWatch()
    assert [watch.push(piece) for piece in ("<|channel|>", "analysis", "<|message|>", "So", " it")][-2:] == [
        ("So", ""), (" it", ""),
    ]  # fmt: skip
    assert watch.inside
    assert watch.push("<|end|><|start|>assistant<|channel|>final<|message|>") == ("", "")
    assert not watch.inside
    assert watch.push("Yes") == ("", "Yes")


def test_only_templates_that_write_channels_have_them() -> None:
    assert has_channels("{{ '<|channel|>final<|message|>' }}")
    assert not has_channels("<|im_start|>")


FUNCTIONS: dict[str, dict[str, Any] | None] = {
    "look": {"properties": {"at": {"type": "string"}, "times": {"type": "integer"}, "deep": {"type": "object"}}},
    "wait": None,
}
ARGUMENTS = {"at": 'the "mat", 12', "times": 3, "deep": {"a": [1, None, True]}}
PLAIN = json.dumps(ARGUMENTS)
BAR, LOW = "\uff5c", "\u2581"
BEGIN, SEP, END = (f"<{BAR}tool{LOW}{word}{BAR}>" for word in (f"call{LOW}begin", "sep", f"call{LOW}end"))
SECTION, OVER = (f"<{BAR}tool{LOW}calls{LOW}{word}{BAR}>" for word in ("begin", "end"))


def parts(form: str) -> str:
    return "".join(form.format(key=k, value=v if isinstance(v, str) else json.dumps(v)) for k, v in ARGUMENTS.items())


XML = (
    f"<function=look>\n{parts('<parameter={key}>{nl}{value}{nl}</parameter>{nl}'.replace('{nl}', chr(10)))}</function>"
)
INVOKE = (
    f'<invoke name="look">\n{parts("<parameter name={q}{key}{q}>{value}</parameter>".replace("{q}", chr(34)))}</invoke>'
)
DSML = INVOKE.replace("<invoke", f"<{BAR}DSML{BAR}invoke").replace("</invoke", f"</{BAR}DSML{BAR}invoke")
DSML = DSML.replace("<parameter", f"<{BAR}DSML{BAR}parameter").replace("</parameter", f"</{BAR}DSML{BAR}parameter")
DSML = DSML.replace('name="at"', 'name="at" string="true"').replace('name="times"', 'name="times" string="false"')
GLM = parts("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n")
PYTHON = 'look(at=\'the "mat", 12\', times=3, deep={"a": [1, null, true]})'
WRITTEN = {
    "qwen3-coder": (f"<tool_call>\n{XML}\n</tool_call>", "<tool_call>\n<function=wait>\n</function>\n</tool_call>"),
    "qwen3-coder, its mark left out": (f"{XML}\n</tool_call>", "<function=wait>\n</function>"),
    "seed": (f"<seed:tool_call>\n{XML}\n</seed:tool_call>", None),
    "glm": (f"<tool_call>look\n{GLM}</tool_call>", "\n<tool_call>wait\n</tool_call>"),
    "minimax": (f"<minimax:tool_call>\n{INVOKE}\n", '<invoke name="wait">\n</invoke>\n</minimax:tool_call>'),
    "deepseek, its first": (
        f"{SECTION}{BEGIN}function{SEP}look\n```json\n{PLAIN}\n```{END}",
        f"\n{BEGIN}function{SEP}wait\n```json\n{{}}\n```{END}{OVER}",
    ),
    "deepseek 3.1": (f"{SECTION}{BEGIN}look{SEP}{PLAIN}{END}", f"{BEGIN}wait{SEP}{{}}{END}{OVER}"),
    "deepseek 3.2": (f"<{BAR}DSML{BAR}function_calls>\n{DSML}\n</{BAR}DSML{BAR}function_calls>", None),
    "kimi": (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{PLAIN}<|tool_call_end|>",
        "<|tool_call_begin|>functions.wait:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "solar": (
        f"<|tool_calls|><|tool_call:begin|>x1<|tool_call:name|>look<|tool_call:args|>{PLAIN}<|tool_call:end|>",
        "<|tool_call:begin|>x2<|tool_call:name|>wait<|tool_call:args|>{}<|tool_call:end|>",
    ),
    "functionary": (f"<function=look>{PLAIN}</function>", "<function=wait>{}</function>"),
    "mistral small": (f"[TOOL_CALLS]look[CALL_ID]abc123XYZ[ARGS]{PLAIN}", "[TOOL_CALLS]wait[CALL_ID]abc123XYW[ARGS]{}"),
    "jamba": (
        f'<tool_calls>[{{"name": "look", "arguments": {PLAIN}}}',
        ', {"name": "wait", "arguments": {}}]</tool_calls>',
    ),
    "minimax, its first": (
        f'<tool_calls>\n{{"name": "look", "arguments": {PLAIN}}}\n',
        '{"name": "wait", "arguments": {}}\n</tool_calls>',
    ),
    "nemotron": (
        f'<TOOLCALL>[{{"name": "look", "arguments": {PLAIN}}}',
        ', {"name": "wait", "arguments": {}}]</TOOLCALL>',
    ),
    "command r": (
        f'<|START_ACTION|>[\n {{"tool_call_id": "0", "tool_name": "look", "parameters": {PLAIN}}}',
        ',\n {"tool_call_id": "1", "tool_name": "wait", "parameters": {}}\n]<|END_ACTION|>',
    ),
    "granite": (f'<|tool_call|>[{{"name": "look", "arguments": {PLAIN}}}', ', {"name": "wait", "arguments": {}}]'),
    "apertus": (f'<|tools_prefix|>[{{"look": {PLAIN}}}', ', {"wait": {}}]<|tools_suffix|>'),
    "lfm2": (f"<|tool_call_start|>[{PYTHON}", ", wait()]<|tool_call_end|>"),
    "olmo 3": (f"<function_calls>\n{PYTHON}", "\nwait()\n</function_calls>"),
    "minicpm": (
        f'<function name="look">{parts("<param name={q}{key}{q}>{value}</param>".replace("{q}", chr(34)))}</function>',
        '\n<function name="wait"></function>',
    ),
}
"""A call of ``look``, and where one may follow one of ``wait``."""


@pytest.mark.parametrize("kind", WRITTEN)
def test_calls_are_read_in_the_notation_of_every_template(kind: str) -> None:
    first, second = WRITTEN[kind]
    text = first + (second or "")
    said, calls = parse_calls(f"Let me see.\n{text}", FUNCTIONS)
    expected = [("look", ARGUMENTS), *([("wait", {})] if second else [])]
    assert said == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in calls] == expected
    watch = CallWatch(FUNCTIONS)
    shown = "".join(watch.push(letter) for letter in f"Let me see.\n{text}")
    assert shown == "Let me see."
    assert watch.finish() == ("", calls)


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_call_of_no_function_that_there_is_is_said(kind: str) -> None:
    text = "".join(part or "" for part in WRITTEN[kind])
    assert parse_calls(text, {"other": None}) == (text, [])


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_notation_that_is_cut_anywhere_ends_in_calls_or_in_its_text(kind: str) -> None:
    text = "".join(part or "" for part in WRITTEN[kind])
    for place in range(len(text)):
        said, calls = parse_calls(text[:place], FUNCTIONS)
        assert said == text[:place] if not calls else {call.name for call in calls} <= set(FUNCTIONS)


def test_names_that_models_give_their_calls_are_kept() -> None:
    _, calls = parse_calls("".join(part or "" for part in WRITTEN["kimi"]), FUNCTIONS)
    assert [call.id for call in calls] == ["functions.look:0", "functions.wait:1"]
    _, calls = parse_calls("".join(part or "" for part in WRITTEN["mistral small"]), FUNCTIONS)
    assert [call.id for call in calls] == ["abc123XYZ", "abc123XYW"]


def test_an_argument_is_what_its_schema_says() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {}}}
    text = "<tool_call>f{}</tool_call>".format(
        "".join(f"<arg_key>{key}</arg_key><arg_value>12</arg_value>" for key in "abc")
        + "<arg_key>d</arg_key><arg_value>{'x': True}</arg_value><arg_key>e</arg_key><arg_value>no JSON</arg_value>"
    )
    _, (call,) = parse_calls(text, {"f": schema})
    assert json.loads(call.arguments) == {"a": "12", "b": 12, "c": 12, "d": {"x": True}, "e": "no JSON"}


ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eom|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "</s>"),
    "<|end|>",
)
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def said_by(name: str, *called: dict[str, Any]) -> str:
    """Return what the template of a published model lets the assistant say for calls, up to the end of its turn."""
    tokenizer = tokenizer_of(name)
    chat = ChatTemplate(tokenizer, JinjaTemplate(published()[name].source, tokenizer))
    answer = {"role": "assistant", "content": None, "tool_calls": list(called)}
    functions = [{"name": function, "parameters": own or EMPTY} for function, own in FUNCTIONS.items()]
    tools = [{"type": "function", "function": function} for function in functions]
    rendered = chat.render([{"role": "user", "content": "look"}, answer], replies=True, tools=tools)
    ids = [id for id, reply in zip(rendered.ids, rendered.reply, strict=True) if reply]
    text = tokenizer.decode(ids, special=True).strip()
    last = tokenizer.decode([id for id in ids if id in tokenizer.control][-1:], special=True)
    text = text.removesuffix(last) if last in ENDS else text
    if has_channels(chat.source):
        watch = ChannelWatch()
        watch.push(text)
        watch.finish()
        return watch.whole[1]
    return text


def called(name: str, arguments: Any, id: str) -> dict[str, Any]:
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


APART = ("functionary-v3.2",)
"""Its prompts end with the mark of a call, for ordinary answers too."""


@pytest.mark.parametrize(
    "name", [name for name, form in published().items() if "tools" in form.reads and name not in APART]
)
def test_what_a_published_template_writes_for_calls_is_read_as_those_calls(name: str) -> None:
    given = {"at": "a mat", "times": 3}
    text = said_by(name, called("look", given, "functions.look:0"))
    _, calls = parse_calls(text, FUNCTIONS)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("look", given)], text
