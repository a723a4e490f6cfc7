"""Fields that clients of vLLM, SGLang, llama.cpp and text-generation-inference send, on the routes of OpenAI."""

import json

import pytest

from serving_toy import chat_model, post, running

CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"
# As pydantic's model_json_schema writes it: without a word of other properties.
CITY = {
    "properties": {"name": {"maxLength": 3, "title": "Name", "type": "string"}, "size": {"enum": [1, 2]}},
    "required": ["name", "size"],
    "title": "City",
    "type": "object",
}
TEMPLATE = (
    "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{%- if shout %}{{ 'LOUD' + shout }}{% endif %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model", TEMPLATE, 512)) as server:
        yield server


def ask(toy, path, **fields):
    """Return the status, and the text of the answer or the error."""
    said = {"prompt": "Hi"} if path == PLAIN else {"messages": [{"role": "user", "content": "Hi"}]}
    status, answer = post(toy, {"model": "toy", "max_tokens": 60, "seed": 4, **said, **fields}, path)
    if status != 200:
        return status, answer["error"]
    (choice,) = answer["choices"]
    return status, choice["text"] if path == PLAIN else choice["message"]["content"]


@pytest.mark.parametrize("path", [CHAT, PLAIN])
@pytest.mark.parametrize("asked", [
    {"response_format": {"type": "json_schema", "json_schema": {"name": "City", "schema": CITY}}},
    {"response_format": {"type": "json_schema", "schema": CITY}},
    {"response_format": {"type": "json_schema", "value": {"name": "City", "schema": CITY}}},
    {"response_format": {"type": "json_object", "schema": CITY}},
    {"response_format": {"type": "json_object", "value": CITY}},
    {"response_format": {"type": "json", "value": CITY}},
    {"guided_json": CITY}, {"guided_json": json.dumps(CITY)}, {"structured_outputs": {"json": CITY}},
    {"json_schema": CITY}, {"json_schema": json.dumps(CITY), "response_format": {"type": "text"}},
])  # fmt: skip
def test_a_schema_holds_the_answer_wherever_it_stands(toy, path, asked):
    status, text = ask(toy, path, **asked)
    assert status == 200
    city = json.loads(text)
    assert list(city) == ["name", "size"]
    assert city["size"] in (1, 2)


@pytest.mark.parametrize("path", [CHAT, PLAIN])
@pytest.mark.parametrize(("asked", "answers"), [
    ({"response_format": {"type": "regex", "regex": "[ab]{3}"}}, None),
    ({"response_format": {"type": "regex", "value": "[ab]{3}"}}, None),
    ({"response_format": {"type": "regex", "pattern": "[ab]{3}"}}, None),
    ({"guided_regex": "[ab]{3}"}, None), ({"regex": "[ab]{3}"}, None),
    ({"structured_outputs": {"regex": "[ab]{3}"}}, None),
    ({"guided_choice": ["a.b", "(c)", "x y"]}, {"a.b", "(c)", "x y"}),
    ({"structured_outputs": {"choice": ["é", "$"], "json": None}}, {"é", "$"}),
])  # fmt: skip
def test_so_do_a_regular_expression_and_a_choice(toy, path, asked, answers):
    status, text = ask(toy, path, **asked)
    assert status == 200
    assert text in answers if answers else len(text) == 3 and set(text) <= set("ab")


@pytest.mark.parametrize(("asked", "param", "said"), [
    ({"guided_json": "{"}, "guided_json", "no JSON"),
    ({"guided_grammar": "root ::= x"}, "guided_grammar", "not supported"),
    ({"structured_outputs": {"grammar": "root ::= x"}}, "grammar", "not supported"),
    ({"structured_outputs": {"structural_tag": "{}"}}, "structural_tag", "not supported"),
    ({"guided_json": '{"a":' * 20_000}, "guided_json", "no JSON"),
    ({"guided_json": [1]}, "guided_json", "a JSON schema"), ({"json_schema": "[1]"}, "json_schema", "a JSON schema"),
    ({"guided_regex": 5}, "guided_regex", "as a text"), ({"structured_outputs": "x"}, "structured_outputs", "one form"),
    ({"guided_choice": "a"}, "guided_choice", "a list of texts"),
    ({"guided_json": CITY, "guided_regex": "a"}, "guided_regex", "one form"),
    ({"guided_json": CITY, "response_format": {"type": "json_object"}}, "guided_json", "one form"),
    ({"response_format": {"type": "regex"}}, "response_format.regex", "needs its regex"),
    ({"response_format": {"type": "structural_tag"}}, "response_format.type", "json_schema"),
    ({"guided_json": {"type": "x"}}, "response_format", "form"),
    ({"response_format": {"type": "json_object"}, "min_tokens": 3}, "min_tokens", ""),
    ({"response_format": {"type": "json_object"}, "ignore_eos": True}, "ignore_eos", ""),
])  # fmt: skip
@pytest.mark.parametrize("path", [CHAT, PLAIN])
def test_what_cannot_be_held_is_refused_by_its_name(toy, path, asked, param, said):
    status, error = ask(toy, path, **asked)
    assert (status, error["param"]) == (400, param)
    assert said in error["message"]


@pytest.mark.parametrize("asked", [
    {"grammar": ""}, {"json_schema": None}, {"guided_choice": []}, {"structured_outputs": None}, {"min_tokens": 0},
    {"structured_outputs": {"json": None, "json_object": False}}, {"ignore_eos": False}, {"stop_token_ids": []},
])  # fmt: skip
@pytest.mark.parametrize("path", [CHAT, PLAIN])
def test_a_field_that_asks_for_nothing_changes_nothing(toy, path, asked):
    assert ask(toy, path, max_tokens=8, **asked) == ask(toy, path, max_tokens=8)


@pytest.fixture
def seen(toy, monkeypatch):
    """The requests that reach the engine."""
    requests, submit = [], toy.served.worker.submit
    monkeypatch.setattr(toy.served.worker, "submit", lambda r, e: (requests.append(r), submit(r, e))[1])
    return requests


@pytest.mark.parametrize("path", [CHAT, PLAIN])
def test_ends_are_ignored_added_and_put_off(toy, seen, path):
    for asked in ({}, {"ignore_eos": True}, {"stop_token_ids": [7, 9]}, {"min_tokens": 4}):
        assert ask(toy, path, max_tokens=5, **asked)[0] == 200
    plain, ignoring, more, later = (one.limits for one in seen)
    assert plain.end
    assert not ignoring.end
    assert set(more.end) == {*plain.end, 7, 9}
    assert (later.end, later.constraints.least_answer) == (plain.end, 4)


def test_variables_reach_the_template_but_for_its_own(toy, seen):
    ask(toy, CHAT, max_tokens=1)
    ask(toy, CHAT, max_tokens=1, chat_template_kwargs={"shout": "er", "enable_thinking": False})
    without, loud = (toy.served.lm.tokenizer.decode(one.prompt, special=True) for one in seen)
    assert loud == without.replace("<|im_start|>assistant", "LOUDer<|im_start|>assistant")
    status, error = ask(toy, CHAT, chat_template_kwargs={"messages": []})
    assert (status, error["param"]) == (400, "chat_template_kwargs.messages")
