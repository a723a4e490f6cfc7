"""What services and programs put into conversations: null fields, ids of calls, reasoning, wrong types, tools."""

import subprocess
import sys

import pytest

from chat_toy import chat_tokenizer
from orrery.errors import DataError, UsageError
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.sources import AuthoredSpan, authored_spans

TOKENIZER = chat_tokenizer("chatml")
ASK = {"role": "user", "content": "What is 1 + 1?"}
CALL = {"type": "function", "id": "abc123XYZ", "function": {"name": "add", "arguments": {"left": "1", "right": "2"}}}
RESULT = {"role": "tool", "tool_call_id": "abc123XYZ", "content": "2"}


def template(source, tokenizer=TOKENIZER):
    return ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))


def text(chat, messages, **variables):
    return chat.tokenizer.decode(chat.render(messages, **variables).ids, special=True)


def test_a_call_id_may_have_the_length_that_a_template_asks_for():
    chat = template(
        "{% for m in messages %}{% for id in [m.tool_call_id or (m.tool_calls or [{'id': '123456789'}])[0].id] %}"
        "{% if id | length != 9 or not id.isalnum() %}{{ raise_exception('nine letters and digits') }}{% endif %}"
        "{{ id }}<|im_end|>{% endfor %}{% endfor %}"
    )
    messages = [ASK, {"role": "assistant", "tool_calls": [CALL]}, RESULT]
    assert text(chat, messages) == "123456789<|im_end|>abc123XYZ<|im_end|>abc123XYZ<|im_end|>"
    assert authored_spans(chat, messages)[2] == AuthoredSpan("message", "abc123XYZ")


def test_a_null_field_is_no_field():
    chat = template("{% for m in messages %}{{ m.content }}|{{ m.name is defined }}<|im_end|>{% endfor %}")
    messages = [{**ASK, "name": None}, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    assert text(chat, messages) == "What is 1 + 1?|False<|im_end|>|False<|im_end|>"
    with pytest.raises(DataError, match=r"message 0 \(user\) has no content"):
        chat.render([{"role": "user", "content": None}])


def test_tools_that_are_not_given_are_none():
    assert text(template("{{ tools is none }} {{ documents is none }}"), [ASK]) == "True True"


@pytest.mark.parametrize("field", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_has_the_names_that_templates_read(field):
    chat = template("{{ messages[1].reasoning_content }} {{ messages[1].thinking }}")
    assert text(chat, [ASK, {"role": "assistant", "content": "2", field: "why"}]) == "why why"


READS_FIELD = (
    "{% for m in messages %}<|im_start|>{% if m.role == 'assistant' %}{% set said = m.content %}"
    "{% if m.reasoning_content %}{% set why = m.reasoning_content %}{% elif '</think>' in said %}"
    "{% set why = said.split('</think>')[0].split('<think>')[-1] %}{% set said = said.split('</think>')[-1] %}"
    "{% endif %}{{ '<think>' + why + '</think>' if why }}{{ said.strip() }}{% else %}{{ m.content }}{% endif %}"
    "<|im_end|>{% endfor %}"
)
CUTS = READS_FIELD.replace("m.reasoning_content", "none").replace("{{ '<think>' + why + '</think>' if why }}", "")
ANSWERS = ["<think>\nso\n</think>\n\n2", "so\n</think>\n\n2", "2"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_reasoning_between_marks_is_split_off_where_the_template_wants_it(answer):
    tokenizer = with_think_tokens()
    messages = [ASK, {"role": "assistant", "content": answer}]
    reads, cuts = template(READS_FIELD, tokenizer), template(CUTS, tokenizer)
    think = "" if answer == "2" else "<think>so</think>"
    assert text(reads, messages) == f"<|im_start|>What is 1 + 1?<|im_end|><|im_start|>{think}2<|im_end|>"
    assert text(cuts, messages) == "<|im_start|>What is 1 + 1?<|im_end|><|im_start|>2<|im_end|>"
    marks = [tokenizer.special(name) for name in ("<think>", "</think>")] if think else []
    assert [id for id in reads.render(messages).ids if id in marks] == marks
    replied = reads.render(messages, replies=True)
    assert reads.tokenizer.decode(
        [id for id, reply in zip(replied.ids, replied.reply, strict=True) if reply], special=True
    ) == f"{think}2<|im_end|>"  # fmt: skip
    # What a user writes between the marks is nobody's reasoning.
    asked = [{"role": "user", "content": answer}]
    assert not set(marks) & set(reads.render(asked).ids)


def with_think_tokens():
    import json

    from orrery.text.tokenizer import Tokenizer

    definition = json.loads(json.dumps(TOKENIZER.definition))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    words = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    definition["added_tokens"] += [{"id": 320 + i, "content": word, **flags} for i, word in enumerate(words)]
    return Tokenizer(json.dumps(definition))


def test_the_reply_of_a_template_without_end_tokens_is_the_answer():
    """As GLM-4.6 writes: control tokens before the answer, and none after it."""
    tokenizer = with_think_tokens()
    chat = template(
        "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>\n<think></think>\n{{ m.content }}"
        "{% else %}<|im_end|>\n{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>{% endif %}",
        tokenizer,
    )
    messages = [ASK, {"role": "assistant", "content": "It is 2."}, ASK]
    rendered = chat.render(messages, replies=True)
    said = [id for id, reply in zip(rendered.ids, rendered.reply, strict=True) if reply]
    assert chat.tokenizer.decode(said, special=True) == "\n<think></think>\nIt is 2."


def test_a_template_that_is_never_asked_after_an_answer_shows_its_replies():
    """It refuses a prompt behind an answer, so the answer's end is looked for where the conversation ends with it."""
    chat = template(
        "{% if add_generation_prompt and messages[-1].role == 'assistant' %}{{ raise_exception('no') }}{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}"
    )
    rendered = chat.render([ASK, {"role": "assistant", "content": "2"}, ASK], replies=True)
    said = [id for id, reply in zip(rendered.ids, rendered.reply, strict=True) if reply]
    assert chat.tokenizer.decode(said, special=True) == "2<|im_end|>"


def test_the_names_of_arguments_are_the_messages():
    chat = template(
        "{% for m in messages %}{% for call in m.tool_calls or [] %}{{ call.function.name }}("
        "{{ call.function.arguments | tojson }}){% endfor %}<|im_end|>{% endfor %}"
    )
    parts = authored_spans(chat, [{"role": "assistant", "tool_calls": [CALL]}])
    assert [part.text for part in parts if part.origin == "message"] == ["add", "left", "1", "right", "2"]
    assert [part.text for part in parts if part.origin == "template"] == ['({"', '": "', '", "', '": "', '"})']


WRONG = """
ASK = {"role": "user", "content": "What is 1 + 1?"}
WRONG = [
    None, 3, "hello", b"hello", {}, [], ASK, ["hello"], [None], [["role", "user"]], [[ASK]], [{}], (m for m in [ASK]),
    [{"role": "user", "content": 3}], [{"role": "user", "content": True}], [{"role": "user", "content": [3]}],
    [{"role": "user", "content": [None]}], [{"role": "user", "content": {1: 2}}],
    [{"role": "user", "content": object()}], [{"role": ["user"], "content": "hi"}],
    [{"role": "assistant", "tool_calls": "add"}], [{"role": "assistant", "tool_calls": ["add"]}],
    [{"role": "assistant", "tool_calls": {"name": "add"}}], [{1: 2, **ASK}], [{**ASK, "role": b"user"}],
]
import sys
from orrery.errors import OrreryError
from orrery.text import load_tokenizer
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.spans.sources import authored_spans
from orrery.text.chat.render import ChatTemplate, chat_format, choose_template

tokenizer = load_tokenizer(sys.argv[1])
jinja = ChatTemplate(tokenizer, JinjaTemplate("{{ messages[0].content }}<|im_end|>", tokenizer))
chats = [jinja, chat_format("chatml", tokenizer)]
calls = [lambda m, c=c, r=r: c.render(m, replies=r) for c in chats for r in (False, True)]
named = [lambda name: choose_template(name, tokenizer)]
tried = [(wrong, [*calls, lambda m: authored_spans(jinja, m)]) for wrong in WRONG]
tried += [(name, named) for name in (3, None, b"chatml", ["chatml"], "", "a" * 5000, "a\\0b", "{{ messages }}")]
for wrong, given in tried:
    for call in given:
        try:
            call(wrong)
        except OrreryError:
            continue
        except Exception as error:
            print(f"{wrong!r}: {error!r}")
        else:
            print(f"{wrong!r}: accepted")
"""


def test_a_wrong_type_is_named(tmp_path):
    """In a process of its own: under pytest the annotations are checked before the program does it."""
    TOKENIZER.save(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WRONG, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_number_that_is_none_is_named():
    with pytest.raises(DataError, match="not plain JSON"):
        template("{{ messages[0].content }}").render([{**ASK, "score": float("nan")}])


@pytest.mark.parametrize("tools", ["add", 3, ["add"], [None], {"name": "add"}, [print]])
def test_tools_of_a_wrong_type_are_named(tools):
    with pytest.raises(DataError, match=r"tools is no list of objects|holds a"):
        template("{{ tools }}").render([ASK], tools=tools)


@pytest.mark.parametrize("name", ["add_generation_prompt", "bos_token", "generation_open"])
def test_a_variable_that_is_the_templates_own_is_refused(name):
    with pytest.raises(UsageError, match=f"{name} is no variable"):
        template("{{ messages[0].content }}").render([ASK], **{name: True})


def test_null_fields_leave_the_callers_messages_alone():
    given = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
    assert template("<|im_end|>").messages(given) == [{"role": "assistant", "tool_calls": [CALL]}]
    assert given[0]["content"] is None


def test_a_command_in_a_message_still_steers_the_template():
    """A placeholder that said something else would take another branch and write other control tokens."""
    chat = template(
        "{% if '/no_think' in messages[0].content %}{{ messages[0].content | replace('/no_think', '') }}<|im_end|>"
        "{% endif %}<|im_start|>"
    )
    assert text(chat, [{"role": "user", "content": "hi/no_think"}]) == "hi<|im_end|><|im_start|>"
    assert text(chat, [{"role": "user", "content": "hi"}]) == "<|im_start|>"


def test_tools_whose_names_are_of_any_script_stay_apart():
    """Placeholders of two names that are one would make one argument of two."""
    chat = template("{% for name in tools[0].function.parameters.properties %}{{ name }}<|im_end|>{% endfor %}")
    names = ["日", "月", "é", "è", "a b", "c d", "<x>", "[x]", "im", "end"]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {n: {} for n in names}}}}
    assert text(chat, [ASK], tools=[tool]).count("<|im_end|>") == len(names)
