"""The `openai` package against a server: what its users call, and the errors that they catch."""

import base64
import json
import struct

import openai
import pytest

import orrery
from served_models import CONTEXT, chat_folder, filling_folder
from server_process import ServerProcess

KEY = "sk-test-0123456789"
USER = {"role": "user", "content": "the cat"}
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "see",
        "parameters": {
            "type": "object",
            "properties": {"at": {"type": "string", "enum": ["cat", "mat"]}},
            "required": ["at"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return chat_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_text(f"{KEY}\n", encoding="utf-8")
    with ServerProcess(folder, "--api-key-file", key) as process:
        yield process


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=60) as openai_client:
        yield openai_client


@pytest.fixture(scope="module")
def lm(folder):
    return orrery.load(folder)


@pytest.fixture
def ask(server):
    """Return common arguments of a call."""
    return {"model": server.model, "max_tokens": 6, "temperature": 0}


def test_models(client, server):
    listed = client.models.list().data
    assert [model.id for model in listed] == [server.model]
    assert client.models.retrieve(server.model).object == "model"


def test_a_completion_is_what_the_library_writes(client, ask, lm):
    answer = client.completions.create(prompt="the cat", **ask)
    assert answer.object == "text_completion"
    assert answer.choices[0].text == lm.generate("the cat", max_new_tokens=6, temperature=0)
    assert answer.choices[0].finish_reason in ("length", "stop")
    assert answer.usage.prompt_tokens == len(lm.tokenizer.encode("the cat"))
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_prompts_of_ids_and_texts_in_their_order(client, ask, lm):
    texts = ["the cat", "a dog", "x"]
    by_text = client.completions.create(prompt=texts, **ask)
    by_ids = client.completions.create(prompt=[lm.tokenizer.encode(text) for text in texts], **ask)
    expected = [one.text for one in lm.generations(texts, max_new_tokens=6)]
    for answer in (by_text, by_ids):
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        assert [choice.text for choice in answer.choices] == expected


def test_several_answers_to_each_prompt(client, ask):
    answer = client.completions.create(prompt=["the cat", "a dog"], n=2, **{**ask, "temperature": 1}, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    again = client.completions.create(prompt=["the cat", "a dog"], n=2, **{**ask, "temperature": 1}, seed=5)
    assert [choice.text for choice in again.choices] == [choice.text for choice in answer.choices]


def test_echo_with_the_log_probabilities_of_the_prompt(client, ask, lm):
    ids = lm.tokenizer.encode("the cat sat")
    answer = client.completions.create(prompt=[ids], echo=True, logprobs=2, **{**ask, "max_tokens": 1})
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == len(ids) + 1
    assert logprobs.token_logprobs[0] is None
    expected = lm.logits([ids])[0].log_softmax(-1)
    for place, id in enumerate(ids[1:]):
        assert logprobs.token_logprobs[place + 1] == pytest.approx(float(expected[place, id]), abs=1e-4)
        assert max(logprobs.top_logprobs[place + 1].values()) >= logprobs.token_logprobs[place + 1] - 1e-6
    assert answer.choices[0].text.startswith("the cat sat")


def test_a_streamed_completion_joined_is_the_whole(client, ask):
    whole = client.completions.create(prompt="the dog", **ask)
    pieces = list(
        client.completions.create(prompt="the dog", stream=True, stream_options={"include_usage": True}, **ask)
    )
    assert "".join(piece.choices[0].text for piece in pieces if piece.choices) == whole.choices[0].text
    assert pieces[-1].choices == []
    assert pieces[-1].usage == whole.usage
    assert len({piece.id for piece in pieces}) == 1


def test_a_chat_is_what_the_library_replies(client, ask, lm):
    answer = client.chat.completions.create(messages=[USER], **ask)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == lm.reply([USER], max_new_tokens=6, temperature=0).text
    assert answer.usage.prompt_tokens == len(lm.chat_ids([USER], prompt=True).ids)


def test_a_streamed_chat_joined_is_the_whole(client, ask):
    whole = client.chat.completions.create(messages=[USER], **ask)
    pieces = list(
        client.chat.completions.create(messages=[USER], stream=True, stream_options={"include_usage": True}, **ask)
    )
    told = [piece.choices[0] for piece in pieces if piece.choices]
    assert told[0].delta.role == "assistant"
    assert "".join(one.delta.content or "" for one in told) == whole.choices[0].message.content
    assert [one.finish_reason for one in told if one.finish_reason] == [whole.choices[0].finish_reason]
    assert pieces[-1].usage == whole.usage


def test_log_probabilities_of_a_chat(client, ask):
    logprobs = client.chat.completions.create(messages=[USER], logprobs=True, top_logprobs=3, **ask).choices[0].logprobs
    assert len(logprobs.content) <= ask["max_tokens"]
    for token in logprobs.content:
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob == pytest.approx(token.logprob)
        assert token.bytes is None or bytes(token.bytes).decode("utf-8", "ignore") is not None


def test_parts_of_a_message_and_developers(client, ask):
    parts = [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "the cat"}]},
    ]
    plain = [{"role": "developer", "content": "be kind"}, USER]
    answers = [client.chat.completions.create(messages=messages, **ask) for messages in (parts, plain)]
    assert answers[0].choices[0].message.content == answers[1].choices[0].message.content


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_tool_that_must_be_called_is_called_with_arguments_of_its_schema(client, ask, choice):
    settings = {**ask, "max_tokens": 80, "temperature": 1, "seed": 3}
    answer = client.chat.completions.create(messages=[USER], tools=[LOOK], tool_choice=choice, **settings)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert [call.function.name for call in message.tool_calls] == ["look"]
    assert json.loads(message.tool_calls[0].function.arguments)["at"] in ("cat", "mat")
    assert not message.content
    turns = [
        USER,
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "a mat"},
    ]
    assert client.chat.completions.create(messages=turns, tools=[LOOK], **ask).choices[0].message.role == "assistant"


def test_streamed_calls_of_a_tool_joined_are_the_call(client, ask):
    settings = {**ask, "max_tokens": 80, "temperature": 1, "seed": 3}
    call = {"messages": [USER], "tools": [LOOK], "tool_choice": "required", **settings}
    whole = client.chat.completions.create(**call).choices[0].message.tool_calls[0].function
    parts = [piece.choices[0].delta.tool_calls or [] for piece in client.chat.completions.create(stream=True, **call)]
    flat = [one for some in parts for one in some]
    assert "".join(one.function.name or "" for one in flat) == whole.name
    assert "".join(one.function.arguments or "" for one in flat) == whole.arguments


def test_functions_of_old_clients_are_called_and_answered_in_their_form(client, ask):
    settings = {**ask, "max_tokens": 80, "temperature": 1, "seed": 3, "functions": [LOOK["function"]]}
    answer = client.chat.completions.create(messages=[USER], function_call={"name": "look"}, **settings).choices[0]
    assert answer.finish_reason == "function_call"
    assert answer.message.tool_calls is None
    assert answer.message.function_call.name == "look"
    assert json.loads(answer.message.function_call.arguments)["at"] in ("cat", "mat")
    tools = {"tools": [LOOK], "tool_choice": {"type": "function", "function": {"name": "look"}}}
    new = client.chat.completions.create(messages=[USER], **{**ask, **settings, **tools, "functions": openai.omit})
    assert new.choices[0].message.tool_calls[0].function.arguments == answer.message.function_call.arguments
    turns = [USER, answer.message.model_dump(exclude_none=True), {"role": "function", "name": "look", "content": "mat"}]
    call = {"id": "call00001", "type": "function", "function": answer.message.function_call.model_dump()}
    same = [
        USER,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "name": "look", "tool_call_id": "call00001", "content": "mat"},
    ]
    goes_on = [
        client.chat.completions.create(messages=own, functions=[LOOK["function"]], **ask) for own in (turns, same)
    ]
    assert goes_on[0].choices[0].message.content == goes_on[1].choices[0].message.content
    assert goes_on[0].usage.prompt_tokens == goes_on[1].usage.prompt_tokens


def test_a_streamed_call_of_an_old_function_joined_is_the_call(client, ask):
    call = {"messages": [USER], "functions": [LOOK["function"]], "function_call": {"name": "look"}}
    call |= {**ask, "max_tokens": 80, "temperature": 1, "seed": 3}
    whole = client.chat.completions.create(**call).choices[0].message.function_call
    pieces = [piece.choices[0] for piece in client.chat.completions.create(stream=True, **call)]
    told = [piece.delta.function_call for piece in pieces if piece.delta.function_call]
    assert "".join(one.name or "" for one in told) == whole.name
    assert "".join(one.arguments or "" for one in told) == whole.arguments
    assert pieces[-1].finish_reason == "function_call"


def test_old_functions_are_in_the_prompt_and_need_not_be_called(client, ask):
    functions = {"functions": [LOOK["function"]]}
    given = client.chat.completions.create(messages=[USER], function_call="auto", **functions, **ask)
    new = client.chat.completions.create(messages=[USER], tools=[LOOK], **ask)
    assert given.usage.prompt_tokens == new.usage.prompt_tokens
    never = client.chat.completions.create(messages=[USER], function_call="none", **functions, **ask)
    assert never.usage.prompt_tokens < given.usage.prompt_tokens
    assert never.choices[0].message.function_call is None


def test_what_stands_between_a_prompt_and_a_suffix_is_written(tmp_path_factory):
    """The reference is the prompt that the model's own tokens make of the two, sent as ids."""
    folder = filling_folder(tmp_path_factory.mktemp("models") / "filling")
    tokenizer = orrery.load(folder).tokenizer
    before, behind, middle = (tokenizer.id(f"<|fim_{part}|>") for part in ("prefix", "suffix", "middle"))
    ids = [before, *tokenizer.encode("the cat"), behind, *tokenizer.encode(" on the mat"), middle]
    with ServerProcess(folder) as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="x") as client:
        how = {"model": server.model, "max_tokens": 12, "temperature": 0}
        wanted = client.completions.create(prompt=ids, **how)
        filled = client.completions.create(prompt="the cat", suffix=" on the mat", **how)
        assert filled.usage.prompt_tokens == len(ids)
        assert filled.choices[0].text == wanted.choices[0].text
        parts = client.completions.create(prompt="the cat", suffix=" on the mat", stream=True, **how)
        assert "".join(part.choices[0].text for part in parts) == wanted.choices[0].text
        nothing = client.completions.create(prompt="", suffix=" on the mat", **how)
        assert nothing.usage.prompt_tokens == len(ids) - len(tokenizer.encode("the cat"))
        plain = client.completions.create(prompt="the cat", suffix="", **how)
        assert plain.usage.prompt_tokens == len(tokenizer.encode("the cat"))


def test_a_model_that_fills_nothing_in_refuses_a_suffix_by_name(client, ask):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(prompt="the cat", suffix=" on the mat", **ask)
    assert (caught.value.param, caught.value.code) == ("suffix", "unsupported_parameter")
    assert "filling in" in str(caught.value)


def test_tools_are_in_the_prompt_and_need_not_be_called(client, ask):
    without = client.chat.completions.create(messages=[USER], **ask)
    given = client.chat.completions.create(messages=[USER], tools=[LOOK], tool_choice="auto", **ask)
    assert given.usage.prompt_tokens > without.usage.prompt_tokens
    never = client.chat.completions.create(messages=[USER], tools=[LOOK], tool_choice="none", **ask)
    assert never.choices[0].message.tool_calls is None


def test_an_answer_has_the_form_that_was_asked_for(client, ask):
    schema = LOOK["function"]["parameters"]
    format = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    settings = {**ask, "max_tokens": 60, "temperature": 1, "seed": 1}
    answer = client.chat.completions.create(messages=[USER], response_format=format, **settings)
    assert json.loads(answer.choices[0].message.content)["at"] in ("cat", "mat")


def test_embeddings_as_floats_and_as_base64(client, server, lm):
    texts = ["the cat", "a dog on a log"]
    plain = client.embeddings.create(model=server.model, input=texts, encoding_format="float")
    packed = client.embeddings.create(model=server.model, input=texts)  # the client asks for base64 and unpacks it
    assert [one.index for one in plain.data] == [0, 1]
    for one, other, text in zip(plain.data, packed.data, texts, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        expected = lm.hidden([lm.tokenizer.encode(text)])[0].mean(0)
        assert one.embedding == pytest.approx((expected / expected.norm()).tolist(), abs=1e-5)
    assert plain.usage.prompt_tokens == sum(len(lm.tokenizer.encode(text)) for text in texts)
    raw = client.embeddings.with_raw_response.create(model=server.model, input="the cat", encoding_format="base64")
    coded = json.loads(raw.text)["data"][0]["embedding"]
    numbers = base64.b64decode(coded)
    assert list(struct.unpack(f"<{len(numbers) // 4}f", numbers)) == pytest.approx(plain.data[0].embedding, abs=1e-6)


def test_embeddings_of_ids(client, server, lm):
    ids = lm.tokenizer.encode("the cat")
    by_text = client.embeddings.create(model=server.model, input="the cat").data[0].embedding
    assert client.embeddings.create(model=server.model, input=ids).data[0].embedding == pytest.approx(by_text, abs=1e-6)
    two = client.embeddings.create(model=server.model, input=[ids, ids[:1]])
    assert [one.index for one in two.data] == [0, 1]


@pytest.mark.parametrize(
    ("setting", "param"),
    [({"temperature": -1}, "temperature"), ({"n": 10**6}, "n"), ({"top_p": 5}, "top_p"), ({"seed": 2**70}, "seed")],
)
def test_a_bad_request_names_its_parameter(client, server, setting, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=server.model, prompt="a", **setting)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_a_prompt_beyond_the_context_has_a_code(client, server):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=server.model, prompt=[5] * CONTEXT, max_tokens=8)
    assert caught.value.code == "context_length_exceeded"
    assert str(CONTEXT) in caught.value.message.replace(",", "")


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-7", messages=[USER])
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-7")


def test_a_wrong_key_is_no_key(server):
    for key in ("sk-wrong", KEY + "x", KEY[:-1], "x"):
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) as stranger:
            with pytest.raises(openai.AuthenticationError) as caught:
                stranger.models.list()
            assert caught.value.code == "invalid_api_key"


def test_many_at_once_through_the_async_client(server, lm):
    import asyncio

    texts = [f"the cat {number}" for number in range(6)]

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
            calls = [
                client.completions.create(model=server.model, prompt=text, max_tokens=5, temperature=0)
                for text in texts
            ]
            return [answer.choices[0].text for answer in await asyncio.gather(*calls)]

    assert asyncio.run(all_of_them()) == [lm.generate(text, max_new_tokens=5, temperature=0) for text in texts]
