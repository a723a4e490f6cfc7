"""A model that answers in channels, as gpt-oss does, behind the server: thought, answer and calls come apart."""

import json

import openai
import pytest

from chat_published import published
from orrery.generation.row import Generation
from orrery.language_model import chat
from scripted import write
from served_models import chat_folder
from serving_toy import events, post, running

FORM = "gpt-oss"
PATH = "/v1/chat/completions"
SAID = [{"role": "user", "content": "the cat"}]
LOOK = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
ANSWER = "<|channel|>analysis<|message|>a cat.<|end|><|start|>assistant<|channel|>final<|message|>the mat"
CALL = (
    "<|channel|>analysis<|message|>a cat.<|end|><|start|>assistant<|channel|>commentary to=functions.look "
    '<|constrain|>json<|message|>{"at": "mat"}'
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_folder(tmp_path_factory.mktemp("models") / "tiny", chat=FORM), "float32") as server:
        yield server


def ask(toy, **fields):
    status, answer = post(toy, {"model": "toy", "messages": SAID, "max_tokens": 200, **fields}, PATH)
    assert status == 200, answer
    return answer


def test_the_end_of_a_message_ends_no_answer(toy):
    ends = {toy.served.lm.tokenizer.decode([id], special=True) for id in toy.served.template.end}
    assert ends == {"<|return|>", "<|call|>"}
    assert "<|channel|>" in published()[FORM].source


def test_what_is_said_and_what_is_thought_are_fields_of_their_own(toy, monkeypatch):
    write(monkeypatch, toy, ANSWER, "<|return|>")
    message = ask(toy)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("the mat", "a cat.")
    told = [json.loads(event)["choices"][0]["delta"] for event in events(ask(toy, stream=True))[:-1]]
    assert "".join(delta.get("reasoning_content") or "" for delta in told) == "a cat."
    assert "".join(delta.get("content") or "" for delta in told) == "the mat"


def test_a_message_to_a_function_is_a_call(toy, monkeypatch):
    write(monkeypatch, toy, CALL, "<|call|>")
    with openai.OpenAI(base_url=f"{toy.url}/v1", api_key="x", max_retries=0, timeout=60) as client:
        (choice,) = client.chat.completions.create(model="toy", messages=SAID, tools=[LOOK], max_tokens=200).choices
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"at": "mat"})
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    again = [*SAID, choice.message.model_dump(exclude_none=True)]
    again.append({"role": "tool", "tool_call_id": call.id, "content": "a mat"})
    write(monkeypatch, toy, ANSWER, "<|return|>")
    assert ask(toy, messages=again, tools=[LOOK])["choices"][0]["message"]["content"] == "the mat"


def test_an_answer_that_is_held_to_a_form_has_no_channels(toy, monkeypatch):
    write(monkeypatch, toy, '{"a": 1}', "<|return|>")
    form = {"type": "json_object"}
    assert ask(toy, response_format=form)["choices"][0]["message"]["content"] == '{"a": 1}'


def test_other_interfaces_tell_them_apart_too(toy, monkeypatch):
    write(monkeypatch, toy, ANSWER, "<|return|>")
    body = {"model": "toy", "messages": SAID, "stream": False}
    message = post(toy, body, "/api/chat")[1]["message"]
    assert (message["content"], message["thinking"]) == ("the mat", "a cat.")
    items = post(toy, {"model": "toy", "input": "the cat"}, "/v1/responses")[1]["output"]
    assert [item["type"] for item in items] == ["reasoning", "message"]
    assert items[1]["content"][0]["text"] == "the mat"


def test_python_says_what_is_said(toy, monkeypatch):
    lm = toy.served.lm
    tokenizer = lm.tokenizer
    ids = tokenizer.encode(ANSWER + "<|return|>", special=True)
    monkeypatch.setattr(chat, "continued", lambda *_: [Generation(ids, "unread", "end", 1.0)])
    shown = []
    assert lm.reply(SAID, stream=shown.append).text == "the mat"
    assert shown == ["the mat"]
