"""``/v1/responses`` as the `openai` package uses it, against a server of this process."""

import json
from typing import Literal, get_args, get_origin, get_type_hints

import openai
import pytest
from openai.types.chat import completion_create_params as chats
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming as Completions
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import input_token_count_params as counts
from openai.types.responses import response_create_params as creates
from openai.types.responses.tool_param import ToolParam
from pydantic import BaseModel

from orrery.serving import kept_responses
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.completions import CompletionRequest
from orrery.serving.schema.reading import EmbeddingsRequest
from orrery.serving.schema.responses import OTHER_TOOLS, ResponsesRequest
from scripted import write
from serving_toy import post, prompt_of

PATH = "/v1/responses"
LOOK = {
    "type": "function",
    "name": "look",
    "description": "see",
    "parameters": {
        "type": "object",
        "properties": {"at": {"type": "string", "enum": ["cat", "mat"]}},
        "required": ["at"],
        "additionalProperties": False,
    },
}
CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "cat"}}\n</tool_call>'


class At(BaseModel):
    """What a schema is made of."""

    at: Literal["cat", "mat"]


@pytest.fixture(scope="module")
def client(toy):
    with openai.OpenAI(base_url=f"{toy.url}/v1", api_key="x", max_retries=0, timeout=60) as openai_client:
        yield openai_client


@pytest.fixture(scope="module")
def on(toy):
    """Return a bias under which the model does not end."""
    return {toy.served.lm.tokenizer.id(token): -100 for token in ("<|im_end|>", "<|endoftext|>")}


@pytest.fixture
def ask(client, on):
    """Return a call with what all of them have."""
    fields = {"model": "toy", "input": "the cat", "max_output_tokens": 6, "temperature": 0}
    return lambda **more: client.responses.create(**{**fields, "extra_body": {"logit_bias": on}, **more})


def test_an_answer_is_that_of_the_library(toy, client, ask, on):
    response = ask()
    said = [{"role": "user", "content": "the cat"}]
    assert response.output_text == toy.served.lm.reply(said, max_new_tokens=6, temperature=0, logit_bias=on).text
    assert (response.object, response.status, response.error) == ("response", "incomplete", None)
    assert response.incomplete_details.reason == "max_output_tokens"
    assert [item.type for item in response.output] == ["message"]
    assert response.usage.input_tokens == len(toy.served.lm.chat_ids(said, prompt=True).ids)
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert client.responses.input_tokens.count(model="toy", input="the cat").input_tokens == response.usage.input_tokens


def test_fields_are_told_again(ask):
    response = ask(instructions="be kind", metadata={"a": "b"}, top_p=0.5, user="ada", parallel_tool_calls=False)
    assert (response.instructions, response.metadata, response.top_p, response.user) == (
        "be kind",
        {"a": "b"},
        0.5,
        "ada",
    )
    assert (response.temperature, response.max_output_tokens, response.parallel_tool_calls) == (0, 6, False)
    assert (response.tool_choice, response.tools, response.truncation, response.text.format.type) == (
        "auto",
        [],
        "disabled",
        "text",
    )


def test_items_are_the_messages_of_a_chat(toy, client, ask, seen):
    items = [
        {"role": "developer", "content": "in German"},
        {"type": "message", "role": "user",
         "content": [{"type": "input_text", "text": "the "}, {"type": "input_text", "text": "cat"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "I see.", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "cat"}'},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": '{"at": "mat"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "a mat"}]},
    ]  # fmt: skip
    ask(input=items, instructions="be kind", tools=[LOOK])
    call = {"type": "function", "function": {"name": "look", "arguments": '{"at": "cat"}'}}
    other = {"type": "function", "function": {"name": "look", "arguments": '{"at": "mat"}'}}
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "developer", "content": "in German"},
        {"role": "user", "content": "the cat"},
        {"role": "assistant", "content": "I see.", "reasoning_content": "hm",
         "tool_calls": [{"id": "c1", **call}, {"id": "c2", **other}]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "name": "look", "content": "a mat"},
    ]  # fmt: skip
    function = {"type": "function", "function": {name: LOOK[name] for name in ("name", "description", "parameters")}}
    client.chat.completions.create(model="toy", messages=messages, tools=[function], max_tokens=6, temperature=0)
    assert list(seen[0].prompt) == list(seen[1].prompt)


def test_the_events_of_a_stream_are_those_of_openai_and_their_whole_is_the_answer(ask):
    events = list(ask(stream=True))
    kinds = [event.type for event in events]
    assert [kind for n, kind in enumerate(kinds) if kind not in kinds[:n]] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
        "response.output_text.delta", "response.output_text.done", "response.content_part.done",
        "response.output_item.done", "response.incomplete",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    whole = ask()
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    last = events[-1].response
    assert (last.output_text, last.status, last.usage.output_tokens) == (whole.output_text, "incomplete", 6)
    assert events[-2].item == last.output[0]


def test_a_stream_that_ends_by_itself_is_completed(client, toy, monkeypatch):
    write(monkeypatch, toy, "so it is")
    with client.responses.stream(model="toy", input="the cat") as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        response = stream.get_final_response()
    assert snapshots[-1] == response.output_text == "so it is"
    assert response.status == response.output[0].status == "completed"


def test_an_empty_answer_is_an_empty_message(ask, toy, monkeypatch):
    write(monkeypatch, toy, "")
    response = ask()
    assert (response.output_text, [item.type for item in response.output], response.status) == (
        "",
        ["message"],
        "completed",
    )


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_is_an_item_of_its_own(ask, toy, monkeypatch, stream):
    write(monkeypatch, toy, "<think>\nwhy not\n</think>\n\nIt is so.")
    response = ask(max_output_tokens=100, stream=stream)
    if stream:
        events = list(response)
        thought = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
        assert "".join(thought) == "why not"
        response = events[-1].response
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.output[0].content[0].text == "why not"
    assert response.output_text == "It is so."
    assert 0 < response.usage.output_tokens_details.reasoning_tokens < response.usage.output_tokens


def test_a_grade_of_reasoning_turns_a_switch(toy, ask, seen):
    for effort, switched in (("none", True), ("low", False), (None, False)):
        ask(reasoning={"effort": effort, "summary": "auto"})
        assert prompt_of(toy, seen[-1]).endswith("<think>\n\n</think>\n\n") is switched


@pytest.mark.parametrize("stream", [False, True])
def test_calls_are_items_and_their_results_are_taken(ask, toy, monkeypatch, seen, stream):
    with monkeypatch.context() as patch:
        write(patch, toy, f"I look.\n{CALL}\n{CALL}")
        response = ask(tools=[LOOK], max_output_tokens=200, stream=stream)
        response = list(response)[-1].response if stream else response
    assert (response.status, [item.type for item in response.output]) == (
        "completed", ["message", "function_call", "function_call"],
    )  # fmt: skip
    call, other = response.output[1:]
    assert (call.name, json.loads(call.arguments), call.status) == ("look", {"at": "cat"}, "completed")
    assert len({call.call_id, other.call_id, call.id, other.id}) == 4
    results = [{"type": "function_call_output", "call_id": one.call_id, "output": "a cat"} for one in (call, other)]
    ask(input=results, previous_response_id=response.id, tools=[LOOK])
    ask(
        input=[{"role": "user", "content": "the cat"}, *(item.to_dict() for item in response.output), *results],
        tools=[LOOK],
    )
    assert list(seen[-1].prompt) == list(seen[-2].prompt)
    assert prompt_of(toy, seen[-1]).count("a cat") == 2


@pytest.mark.parametrize("choice", [
    "required",
    {"type": "function", "name": "look"},
    {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]},
])  # fmt: skip
def test_a_call_that_is_demanded_comes(client, choice):
    other = {"type": "function", "name": "smell", "parameters": {"type": "object"}, "strict": True}
    tools = [LOOK] if choice == "required" else [LOOK, other]
    fields = {"tools": tools, "tool_choice": choice, "max_output_tokens": 80, "temperature": 1}
    with client.responses.stream(model="toy", input="the cat", **fields) as stream:
        kinds = [event.type for event in stream]
        response = stream.get_final_response()
    assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= set(kinds)
    assert [item.name for item in response.output] == ["look"]
    assert json.loads(response.output[0].arguments)["at"] in ("cat", "mat")


def test_an_answer_is_parsed_by_its_type(client, ask):
    response = client.responses.parse(model="toy", input="the cat", text_format=At, max_output_tokens=60, temperature=1)
    assert response.output_parsed.at in ("cat", "mat")
    response = ask(text={"format": {"type": "json_object"}}, max_output_tokens=2)
    assert response.output_text.startswith("{")


def test_log_probabilities_are_told_where_they_are_asked_for(ask):
    told = ask(include=["message.output_text.logprobs"], top_logprobs=2).output[0].content[0].logprobs
    assert len(told) == 6
    assert all(len(one.top_logprobs) == 2 and one.logprob <= 0 for one in told)
    events = list(ask(include=["message.output_text.logprobs"], stream=True))
    deltas = [one for event in events if event.type == "response.output_text.delta" for one in event.logprobs]
    assert [one.token for one in deltas] == [one.token for one in told]
    assert ask().output[0].content[0].logprobs == []


def test_a_response_goes_on_from_another_and_is_forgotten_when_told(client, ask, seen):
    first = ask(instructions="be kind")
    second = ask(input="and?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    said = [
        {"role": "user", "content": "the cat"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "and?"},
    ]
    client.chat.completions.create(model="toy", messages=said, max_tokens=6)
    assert list(seen[1].prompt) == list(seen[2].prompt)
    assert client.responses.retrieve(first.id) == first
    client.responses.delete(first.id)
    for call in (
        lambda: client.responses.retrieve(first.id),
        lambda: client.responses.delete(first.id),
        lambda: ask(previous_response_id=first.id),
        lambda: ask(previous_response_id=ask(store=False).id),
        lambda: ask(previous_response_id=list(ask(store=False, stream=True))[-1].response.id),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert caught.value.code == "response_not_found"
    assert ask(previous_response_id=list(ask(stream=True))[-1].response.id).status == "incomplete"


def test_no_more_is_kept_than_the_bounds_allow(ask, client, monkeypatch):
    monkeypatch.setattr(kept_responses, "MOST", 2)
    ids = [ask().id for _ in range(3)]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(ids[0])
    assert client.responses.retrieve(ids[2]).id == ids[2]
    monkeypatch.setattr(kept_responses, "MOST_BYTES", 10)
    alone = ask().id
    for id in (*ids[1:], alone):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(id)


def test_the_oldest_turns_are_left_out_where_the_client_says_so(toy, ask, seen):
    long = {"role": "user", "content": "the cat sat on the mat " * 12}
    items = [{"role": "system", "content": "be kind"}, *[long, {"role": "assistant", "content": "so"}] * 8]
    items.append({"role": "user", "content": "the last"})
    with pytest.raises(openai.BadRequestError) as caught:
        ask(input=items)
    assert (caught.value.param, caught.value.code) == ("input", "context_length_exceeded")
    assert ask(input=items, truncation="auto").truncation == "auto"
    read = prompt_of(toy, seen[-1])
    assert "be kind" in read
    assert "the last" in read
    kept = read.count("the cat sat") // 12
    assert 0 < kept < 8
    assert len(seen[-1].prompt) + 6 <= toy.served.lm.context
    more = [items[0], *items[-2 * (kept + 1) - 1 :]]
    with pytest.raises(openai.BadRequestError):
        ask(input=more)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "file:///etc"}]}]},
         "input[0].content[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "computer_call", "id": "msg_1"}]}, "input[0]"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "function_call", "name": "look", "arguments": "{}"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, "input[0].encrypted_content"),
        ({"input": "the cat " * 600}, "input"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": 10**6}, "input"),
        ({"temperature": -1}, "temperature"),
        ({"n": 2}, "n"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"tools": [{"type": "web-search"}]}, "tools[0].type"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [LOOK, {"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tools": [LOOK, LOOK]}, "tools"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "smell"}}, "tool_choice"),
        ({"tools": [LOOK], "tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [
            {"type": "function", "name": "smell"}]}}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "x"}}}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"include": ["everything"]}, "include[0]"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"metadata": {"a": 5}}, "metadata.a"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"truncation": "middle"}, "truncation"),
        ({"reasoning": {"effort": "much"}}, "reasoning.effort"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"stream": "yes"}, "stream"),
        ({"model": "gpt-7"}, "model"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_the_name_of_its_field(toy, change, param):
    status, answer = post(toy, {"model": "toy", "input": "a", "max_output_tokens": 2, **change}, PATH)
    assert status == (404 if param in ("model", "previous_response_id") else 400), answer
    assert answer["error"]["param"] == param, answer


def test_an_answer_that_fails_in_a_stream_is_told_as_failed(toy, ask, monkeypatch):
    def broken(*_):
        raise RuntimeError("no more")

    monkeypatch.setattr(toy.served.responses, "add", broken)
    monkeypatch.setattr("orrery.serving.chat_answers.ChatAnswers.take", broken)
    last = list(ask(stream=True))[-1]
    assert (last.type, last.response.status, last.response.error.code) == ("response.failed", "failed", "server_error")


def fields_of(kind):
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (creates.ResponseCreateParamsNonStreaming, ResponsesRequest),
        (creates.ResponseCreateParamsStreaming, ResponsesRequest),
        (counts.InputTokenCountParams, ResponsesRequest),
        (chats.CompletionCreateParamsNonStreaming, ChatRequest),
        (chats.CompletionCreateParamsStreaming, ChatRequest),
        (Completions, CompletionRequest),
        (EmbeddingCreateParams, EmbeddingsRequest),
    ],
)
def test_every_field_of_openai_is_followed_refused_or_harmless_for_a_reason(theirs, ours):
    told = (set(ours.model_fields), set(ours.UNSUPPORTED), set(ours.HARMLESS))
    assert fields_of(theirs) - set.union(*told) == set()
    assert set(ours.UNSUPPORTED) & set(ours.HARMLESS) == set()


def test_tools_that_are_no_functions_are_not_offered(client, toy):
    """Codex sends tools of a service, some in a namespace, with every request, as does the Agents SDK where asked."""
    others = [
        {"type": "web_search", "external_web_access": False},
        {"type": "namespace", "name": "files", "description": "files", "tools": [LOOK]},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "mcp", "server_label": "x", "server_url": "https://example.com"},
    ]
    tools = [others[0], LOOK, *others[1:]]
    counts = [client.responses.input_tokens.count(input="Hi", tools=some).input_tokens for some in (tools, [LOOK])]
    assert counts[0] == counts[1]
    response = client.responses.create(model="toy", input="Hi", max_output_tokens=4, tools=tools)
    assert [tool.name for tool in response.tools] == ["look"]
    assert client.responses.create(model="toy", input="Hi", max_output_tokens=4, tools=others).tools == []


def test_every_kind_of_tool_of_the_package_is_known():
    kinds = {kind for tool in get_args(ToolParam) for kind in kinds_of(tool)}
    assert {*OTHER_TOOLS, "function"} == kinds


def kinds_of(tool):
    return {kind for one in get_args(tool) or (tool,) for kind in literals(get_type_hints(one)["type"])}


def literals(kind):
    inner = get_args(kind)
    return inner if get_origin(kind) is Literal else literals(inner[0])


def test_a_conversation_is_not_compacted(client):
    with pytest.raises(openai.NotFoundError, match="truncation"):
        client.responses.compact(model="toy", input="Hi")
