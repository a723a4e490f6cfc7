"""The chat formats of published models: the ids are the reference's, and the replies are what the assistant wrote."""

import itertools
import json
import re

import jinja2
import pytest
from transformers.utils import chat_template_utils

from chat_published import published, reference_of, tokenizer_of
from orrery.errors import OrreryError
from orrery.text.chat.channels import ENDS, has_channels
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.encoding import Control
from orrery.text.chat.tool_prompt import in_words

FORMATS = published()
UNICODE = "été 東京 🦊\u00a0—  “so”\n\n\tx"


def user(text="What is 1 + 1?"):
    return {"role": "user", "content": text}


def assistant(text="It is 2.", **fields):
    return {"role": "assistant", "content": text, **fields}


def call(name="get_weather", id="abc123XYZ", **arguments):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


def result(text='{"celsius": 20}', id="abc123XYZ", name="get_weather"):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a place <now>",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "Ort, z. B. Zürich"},
                    "days": {"type": "integer", "enum": [1, 2]},
                },
                "required": ["place"],
            },
        },
    }
]
TURNS = {
    "one": [user()],
    "three": [user(), assistant(), user("and why?")],
    "four": [user(), assistant(), user("and why?"), assistant("Hello there!")],
    "system": [SYSTEM, user(), assistant(), user("and why?"), assistant("Hello there!\n")],
    "unicode": [SYSTEM, user(UNICODE), assistant(f"{UNICODE} z"), user(" hi "), assistant("7 🦊")],
    "repeated": [user("a"), assistant("a"), user("a"), assistant("a")],
    "null fields": [user(), assistant(name=None, tool_calls=None), user("and why?")],
}
CALLS = {
    "tools": [SYSTEM, user()],
    "call": [user(), assistant(None, tool_calls=[call(place="Zürich")]), result(), assistant("20 degrees")],
    "numbers": [user(), assistant("", tool_calls=[call(days=2, deep={"a": [1, None]})]), result("20"), assistant()],
    "text and call": [SYSTEM, user(), assistant("Let me look.", tool_calls=[call(place="a", days=1)]), result()],
    "again": [
        user(), assistant(None, tool_calls=[call(place="東京")]), result(), assistant("20"), user(),
        assistant(None, tool_calls=[call(place="b", id="def456UVW")]), result("x", "def456UVW"), assistant("21"),
    ],
    "two calls": [
        user(), assistant(None, tool_calls=[call(place="a"), call(place="b", id="def456UVW")]),
        result("1"), result("2", "def456UVW"), assistant("1 and 2"),
    ],
    "no arguments": [user(), assistant(None, tool_calls=[call()]), result(), assistant("20"), user("so?"), assistant()],
}  # fmt: skip
THOUGHTS = {
    "thought": [user(), assistant(reasoning_content="one and one")],
    "thoughts": [user(), assistant(reasoning_content="a b"), user("why?"), assistant("so", reasoning_content="c\nd")],
    "thought and call": [
        user(), assistant(None, reasoning_content="look", tool_calls=[call(place="a")]), result(), assistant("20"),
    ],
}  # fmt: skip
INSIDE = {"inside": [user(), assistant("<think>\na b\n</think>\n\nso"), user("why?"), assistant("</think>\n\nyes")]}


def conversations(form):
    messages_by_name = {name: (messages, {}) for name, messages in TURNS.items()}
    if "tools" in form.reads:
        messages_by_name |= {name: (messages, {"tools": TOOLS}) for name, messages in CALLS.items()}
        messages_by_name["a call without tools"] = (CALLS["call"], {})
    if "reasoning" in form.reads:
        thoughts = THOUGHTS if "tools" in form.reads else {k: v for k, v in THOUGHTS.items() if "call" not in k}
        messages_by_name |= {name: (messages, {}) for name, messages in thoughts.items()}
    if "marks" in form.reads:
        messages_by_name |= {name: (messages, {}) for name, messages in INSIDE.items()}
    return {
        (name, prompt): (messages, variables)
        for (name, (messages, variables)), prompt in itertools.product(messages_by_name.items(), (False, True))
        if not prompt or messages[-1]["role"] != "assistant"
    }


@pytest.fixture(params=FORMATS)
def form(request):
    return FORMATS[request.param]


def chat_of(form, source=None):
    tokenizer = tokenizer_of(form.name)
    return ChatTemplate(tokenizer, JinjaTemplate(source or form.source, tokenizer))


def theirs(form, messages, prompt, **variables):
    """Return the reference's ids and what the assistant wrote; None where the template refuses the conversation.

    Where the template has no place for tools, they are said in words.
    """
    if "tools" in variables and not re.search(r"\btools\b", form.source):
        plain = [{key: value for key, value in message.items() if value is not None} for message in messages]
        ways = (in_words(plain, variables["tools"], system, "tool_calls" in form.source) for system in (True, False))
        return next((by_reference for way in ways if (by_reference := theirs(form, way, prompt)) is not None), None)
    reference = reference_of(form.name)
    try:
        ids = reference.apply_chat_template(
            messages, chat_template=form.source, add_generation_prompt=prompt, **variables
        )
    except (jinja2.TemplateError, TypeError):  # its own refusal, or a text joined with a field that is missing
        return None
    (text,), (spans,) = chat_template_utils.render_jinja_template(
        [[{key: value for key, value in message.items() if value is not None} for message in messages]],
        chat_template=form.annotated, add_generation_prompt=prompt, return_assistant_tokens_mask=True,
        **reference.special_tokens_map, **variables,
    )  # fmt: skip
    return ids["input_ids"], joined((letter, any(a <= at < b for a, b in spans)) for at, letter in enumerate(text))


def joined(pieces):
    """Return the stretches that the assistant wrote."""
    groups = itertools.groupby(pieces, key=lambda piece: piece[1])
    return [text.strip() for reply, group in groups if reply for text in ["".join(piece for piece, _ in group)]]


def replies(spans):
    parts = [(s.token, s.reply) if isinstance(s, Control) else (s.text, s.reply) for s in spans]
    return joined(part for part in parts if part[0])


def test_eighty_formats_are_held():
    assert len(FORMATS) >= 80


def test_the_ids_are_the_references(form):
    chat = chat_of(form)
    refused, rendered = [], 0
    for (name, prompt), (messages, variables) in conversations(form).items():
        reference = theirs(form, messages, prompt, **variables)
        if reference is None:
            with pytest.raises(OrreryError, match="chat template"):
                chat.render(messages, prompt, **variables)
            continue
        try:
            ids = chat.render(messages, prompt, **variables).ids
        except OrreryError as error:
            refused.append((name, str(error)))
            continue
        assert ids == reference[0], (name, prompt, chat.tokenizer.decode(ids, special=True),
                                 chat.tokenizer.decode(reference[0], special=True))  # fmt: skip
        rendered += 1
    assert refused == []  # none of what the reference renders
    assert rendered >= 4


def test_the_replies_are_what_the_assistant_wrote(form):
    chat, annotated = chat_of(form), chat_of(form, form.annotated)
    for (name, prompt), (messages, variables) in conversations(form).items():
        reference = theirs(form, messages, prompt, **variables)
        if reference is None:
            continue
        for one in (annotated, chat):
            assert replies(one.spans(messages, prompt, True, **variables)) == reference[1], (
                name,
                prompt,
                one is chat,
            )
        assert chat.render(messages, prompt, replies=True, **variables).ids == reference[0]


def test_an_answer_ends_at_the_token_that_ends_a_turn(form):
    chat = chat_of(form)
    _, written = theirs(form, TURNS["one"] + [assistant("b")], False)
    tokens = [token for token in (*form.tokens, form.end, "") if token is not None]
    end = max((token for token in tokens if written[-1].endswith(token)), key=len)
    ends = ENDS if has_channels(chat.source) else (end,)
    assert end in ends
    assert chat.end == {chat.tokenizer.special(token) for token in ends if token}


def test_no_message_forges(form):
    chat = chat_of(form)
    tokens = [*form.tokens, *form.added, *filter(None, (form.bos, form.end))]
    control = chat.tokenizer.control - {chat.tokenizer.id("<unk>")}
    evil = " ".join(tokens) + " evil"
    harmless = [token for token in chat.form.spans([user("x")], True) if isinstance(token, Control)]
    refused = []
    for text in (evil, *tokens, *(token[: len(token) // 2] for token in tokens)):
        try:
            ids = chat.render([user(text)], True).ids
        except OrreryError as error:
            refused.append(error.message)
            continue
        assert [id for id in ids if id in control] == [chat.tokenizer.special(token.token) for token in harmless]
        if text == evil:
            assert "evil" in chat.tokenizer.decode(ids)
    assert all("delimiter" in message or "control token" in message for message in refused)
    if "tools" in form.reads:
        tools = json.loads(json.dumps(TOOLS).replace("Ort, z. B.", json.dumps(evil)[1:-1]))
        spans = [chat.spans(TURNS["one"], True, tools=given) for given in (TOOLS, tools)]
        assert [[s for s in some if isinstance(s, Control)] for some in spans[:1]] == [
            [s for s in some if isinstance(s, Control)] for some in spans[1:]
        ]


def test_a_call_without_content_is_rendered_as_the_reference_does_or_as_an_empty_text(form):
    chat = chat_of(form)
    of = lambda content: [user(), assistant(content, tool_calls=[call(place="Ulm")]), result(), user("and now?")]  # noqa: E731
    variables = {"tools": TOOLS} if "tools" in form.reads else {}
    expected = theirs(form, of(None), True, **variables) or theirs(form, of(""), True, **variables)
    if expected is None:
        with pytest.raises(OrreryError, match="chat template"):
            chat.render(of(None), True, **variables)
        return
    left_out = [{name: value for name, value in message.items() if value is not None} for message in of(None)]
    for messages in (of(None), left_out):
        assert chat.render(messages, True, **variables).ids == expected[0]


def test_tools_without_a_place_in_the_template_are_said_in_words(form):
    chat = chat_of(form)
    talk = [user(), assistant(None, tool_calls=[call(place="Ulm")]), result("20 degrees"), user("and now?")]
    if chat.reads_tools:
        assert "tools" in form.reads
        return
    text = chat.tokenizer.decode(chat.render([user()], True, tools=TOOLS).ids, special=True)
    assert "get_weather" in text
    assert "Zürich" in text
    assert "What is 1 + 1?" in text
    assert "get_weather" not in chat.tokenizer.decode(chat.render([user()], True).ids, special=True)
    if theirs(form, [user(), assistant(), user("x"), user("y")], True) is None:
        return  # turns alternate
    text = chat.tokenizer.decode(chat.render(talk, True, tools=TOOLS).ids, special=True)
    for word in ("20 degrees", "and now?", "Ulm"):
        assert word in text
