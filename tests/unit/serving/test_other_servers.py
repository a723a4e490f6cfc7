"""Fields that clients of vLLM, SGLang, llama.cpp and text-generation-inference send, on the routes of OpenAI."""

import json
import time

import pytest
import torch
from pydantic import ValidationError

from orrery.generation.samplers import Sampler
from orrery.serving import conversations, requests
from orrery.serving.errors import ApiError
from orrery.serving.schema import other_names
from orrery.serving.schema.chat import ChatRequest, ContentPart, Message
from orrery.serving.schema.completions import CompletionRequest
from orrery.serving.schema.responses import ResponsesRequest
from serving_toy import chat_model, post, running

CHAT, PLAIN, ITEMS = "/v1/chat/completions", "/v1/completions", "/v1/responses"
PATHS = pytest.mark.parametrize("path", [CHAT, PLAIN, ITEMS])
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
    said = {PLAIN: {"prompt": "Hi"}, ITEMS: {"input": "Hi"}}.get(
        path, {"messages": [{"role": "user", "content": "Hi"}]}
    )
    longest = {"max_tokens": 60} | fields
    if path == ITEMS:
        longest["max_output_tokens"] = longest.pop("max_tokens")
    status, answer = post(toy, {"model": "toy", "seed": 4, **said, **longest}, path)
    if status != 200:
        return status, answer["error"]
    if path == ITEMS:
        (item,) = answer["output"]
        return status, item["content"][0]["text"]
    (choice,) = answer["choices"]
    return status, choice["text"] if path == PLAIN else choice["message"]["content"]


@PATHS
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


@PATHS
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
@PATHS
def test_what_cannot_be_held_is_refused_by_its_name(toy, path, asked, param, said):
    status, error = ask(toy, path, **asked)
    if path == ITEMS and asked == {
        "guided_json": {"type": "x"}
    }:  # what cannot be held is called by the name it has there
        param = "text.format"
    assert (status, error["param"]) == (400, param)
    assert said in error["message"]


def test_a_response_has_one_form():
    both = {"text": {"format": {"type": "json_object"}}, "guided_regex": "a"}
    with pytest.raises(ApiError, match="one form"):
        ResponsesRequest.model_validate({"input": "Hi", **both})


@pytest.mark.parametrize("asked", [
    {"grammar": ""}, {"json_schema": None}, {"guided_choice": []}, {"structured_outputs": None}, {"min_tokens": 0},
    {"structured_outputs": {"json": None, "json_object": False}}, {"ignore_eos": False}, {"stop_token_ids": []},
])  # fmt: skip
@PATHS
def test_a_field_that_asks_for_nothing_changes_nothing(toy, path, asked):
    assert ask(toy, path, max_tokens=8, **asked) == ask(toy, path, max_tokens=8)


@PATHS
def test_ends_are_ignored_added_and_put_off(toy, seen, path):
    for asked in ({}, {"ignore_eos": True}, {"stop_token_ids": [7, 9]}, {"min_tokens": 4}):
        assert ask(toy, path, max_tokens=5, **asked)[0] == 200
    plain, ignoring, more, later = (one.limits for one in seen)
    assert plain.end
    assert not ignoring.end
    assert set(more.end) == {*plain.end, 7, 9}
    assert (later.end, later.constraints.least_answer) == (plain.end, 4)


@PATHS
def test_settings_of_other_servers_are_ours_by_another_name(toy, seen, path):
    pairs = [
        ({"repeat_penalty": 1.3}, {"repetition_penalty": 1.3, "repetition_window": 64}),
        ({"repeat_penalty": 1.3, "repeat_last_n": 9}, {"repetition_penalty": 1.3, "repetition_window": 9}),
        ({"repeat_penalty": 1.3, "repeat_last_n": -1}, {"repetition_penalty": 1.3}),
        ({"repeat_penalty": 1.3, "repeat_last_n": 0}, {"repetition_penalty": 1}),
        ({"random_seed": 9, "seed": None}, {"seed": 9}), ({"min_new_tokens": 3}, {"min_tokens": 3}),
    ]  # fmt: skip
    for theirs, ours in pairs:
        assert ask(toy, path, max_tokens=4, **theirs)[0] == ask(toy, path, max_tokens=4, **ours)[0] == 200
        first, second = seen[-2:]
        assert (first.sampler, first.limits, first.seed) == (second.sampler, second.limits, second.seed)


@PATHS
def test_a_setting_under_two_names_or_out_of_its_range_is_refused_as_it_was_sent(toy, path):
    for asked, param in (
        ({"repeat_penalty": 1.3, "repetition_penalty": 1.2}, "repeat_penalty"),
        ({"repeat_penalty": -1}, "repeat_penalty"),
        ({"repeat_last_n": -7}, "repeat_last_n"), ({"min_new_tokens": "x"}, "min_new_tokens"),
        ({"random_seed": 0.5, "seed": None}, "random_seed"), ({"random_seed": 5}, "random_seed"),
    ):  # fmt: skip
        status, error = ask(toy, path, **asked)
        assert (status, error["param"]) == (400, param)
        assert "repetition_window" not in error["message"]


BODIES = {
    CHAT: (ChatRequest, {"messages": [{"role": "user", "content": "Hi"}]}),
    PLAIN: (CompletionRequest, {"prompt": "Hi"}),
    ITEMS: (ResponsesRequest, {"input": "Hi"}),
}


@PATHS
def test_what_only_another_server_does_is_refused_with_a_hint_and_its_neutral_value_taken(path):
    kind, said = BODIES[path]
    assert not other_names.UNSUPPORTED.keys() & {*other_names.HARMLESS, *other_names.RENAMED, *kind.model_fields}
    for name, (neutral, instead) in other_names.UNSUPPORTED.items():
        for value in neutral:
            kind.model_validate({**said, name: value})
        with pytest.raises(ApiError, match=f"{name} is not supported") as caught:
            kind.model_validate({**said, name: "something"})
        assert instead in caught.value.detail
        assert caught.value.param == name


def test_an_options_name_beside_ollamas_options_is_refused(toy):
    said = {"messages": [{"role": "user", "content": "Hi"}]}
    for name in ("temperature", "num_ctx", "max_tokens", "response_format"):
        status, answer = post(toy, {"model": "toy", **said, name: 1}, "/api/chat")
        assert (status, name in answer["error"]) == (400, True)


@PATHS
def test_a_quiet_stream_says_that_it_lives(toy, monkeypatch, path):
    monkeypatch.setattr("orrery.serving.events.QUIET", 0.02)

    def slow(*_):
        return Sampler((), lambda logits_BV, generators: (time.sleep(0.2), torch.full((len(logits_BV),), 65))[1])

    said = {PLAIN: {"prompt": "Hi"}, ITEMS: {"input": "Hi"}}.get(
        path, {"messages": [{"role": "user", "content": "Hi"}]}
    )
    with monkeypatch.context() as patch:
        patch.setattr(requests, "sampler_for", slow)
        longest = {"max_output_tokens" if path == ITEMS else "max_tokens": 3}
        status, text = post(toy, {"model": "toy", "stream": True, **longest, **said}, path)
    frames = text.split("\n\n")
    assert status == 200
    assert frames.count(": nothing new") >= 3
    assert "data: " in frames[-2]


@PATHS
def test_counts_in_every_event_are_refused_and_obfuscation_is_nothing(toy, path):
    asked = {"stream": True, "stream_options": {"continuous_usage_stats": True}}
    status, error = ask(toy, path, **asked)
    assert (status, error["param"]) == (400, "continuous_usage_stats")
    kind, said = BODIES[path]
    kind.model_validate({**said, "stream": True, "stream_options": {"include_obfuscation": True}})


def test_any_tool_is_a_required_one_and_a_prefix_a_refusal(toy):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    asked = ChatRequest.model_validate(
        {"messages": [{"role": "user", "content": "a"}], "tools": [tool], "tool_choice": "any"}
    )
    assert [one.name for one in asked.forced] == ["look"]
    begun = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "prefix": True}]
    status, error = ask(toy, CHAT, messages=begun)
    assert (status, error["param"]) == (400, "messages[1].prefix")


def test_variables_reach_the_template_but_for_its_own(toy, seen):
    ask(toy, CHAT, max_tokens=1)
    ask(toy, CHAT, max_tokens=1, chat_template_kwargs={"shout": "er", "enable_thinking": False})
    without, loud = (toy.served.lm.tokenizer.decode(one.prompt, special=True) for one in seen)
    assert loud == without.replace("<|im_start|>assistant", "LOUDer<|im_start|>assistant")
    status, error = ask(toy, CHAT, chat_template_kwargs={"messages": []})
    assert (status, error["param"]) == (400, "chat_template_kwargs.messages")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n_predict"])
def test_minus_one_bounds_no_chat(name):
    """So LM Studio's documentation asks, and llama.cpp's page."""
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    assert ChatRequest.model_validate({**asked, name: -1}) == ChatRequest.model_validate(asked)
    with pytest.raises((ValidationError, ApiError), match="max_"):
        ChatRequest.model_validate({**asked, name: -2})


def test_what_was_refused_was_said_and_a_picture_may_be_an_address():
    said = {"role": "assistant", "content": "no"}
    for told in (
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ):
        plain = [conversations._plain(Message.model_validate(one)) for one in (told, said)]
        assert plain[0] == plain[1]
    address = "data:image/png;base64,AAAA"
    parts = [{"type": "image_url", "image_url": one} for one in (address, {"url": address})]
    assert ContentPart.model_validate(parts[0]) == ContentPart.model_validate(parts[1])
    with pytest.raises(ApiError, match="'text' lacks its text"):
        ChatRequest.model_validate({"messages": [{"role": "user", "content": [{"type": "refusal"}]}]})
    for fault in ({"type": "refusal", "refusal": 5}, {"type": "image_url", "image_url": 5}):
        with pytest.raises((ValidationError, ApiError)):
            ChatRequest.model_validate({"messages": [{"role": "user", "content": [fault]}]})


def test_no_top_logprobs_are_none():
    asked = {"messages": [{"role": "user", "content": "Hi"}], "logprobs": False, "top_logprobs": 0}
    assert ChatRequest.model_validate(asked).logprobs is False
