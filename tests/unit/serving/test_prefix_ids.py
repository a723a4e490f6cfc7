"""Answers that begin with given tokens, and the ids of tokens beside their texts."""

import pytest

from serving_toy import chat_model, events, post, running

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


def asked(path, **more):
    chat = path == CHAT
    question = {"messages": [{"role": "user", "content": "the cat"}]} if chat else {"prompt": "the cat"}
    scores = {"logprobs": True, "top_logprobs": 3} if chat else {"logprobs": 3}
    return {**question, **scores, "temperature": 0, "max_tokens": 6, "return_token_ids": True, **more}


def tokens(toy, path, **more):
    status, answer = post(toy, asked(path, **more), path)
    assert status == 200, answer
    return answer["choices"][0]["logprobs"]["content"]


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_an_answer_goes_on_behind_its_own_beginning(toy, path):
    whole = [one["id"] for one in tokens(toy, path)]
    assert len(whole) == 6
    rest = tokens(toy, path, prefix_ids=whole[:2], max_tokens=4)
    assert [one["id"] for one in rest] == whole[2:]
    texts = toy.served.tokens
    assert all(texts.text(one["id"]) == one["token"] for one in rest)
    assert all(texts.text(best["id"]) == best["token"] for one in rest for best in one["top_logprobs"])
    assert all(one["top_logprobs"][0]["logprob"] >= one["logprob"] - 1e-6 for one in rest)


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_stream_tells_the_same_ids(toy, path):
    import json

    status, text = post(toy, asked(path, stream=True), path)
    assert status == 200
    parts = [json.loads(event)["choices"][0]["logprobs"] for event in events(text)[:-1]]
    streamed = [one["id"] for part in parts if part for one in part["content"]]
    assert streamed == [one["id"] for one in tokens(toy, path)]


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_without_being_asked_nothing_tells_ids(toy, path):
    status, answer = post(toy, {**asked(path), "return_token_ids": False}, path)
    assert status == 200
    told = answer["choices"][0]["logprobs"]
    assert ("content" in told) == (path == CHAT)
    assert all("id" not in one for one in told.get("content", []))


@pytest.mark.parametrize(
    ("path", "more", "said"),
    [
        (CHAT, {"prefix_ids": [10**6]}, "the model has no token"),
        (TEXT, {"prefix_ids": [10**6]}, "the model has no token"),
        (TEXT, {"prefix_ids": [1], "echo": True}, "echo is for prompts without prefix_ids"),
        (CHAT, {"prefix_ids": [1], "response_format": {"type": "json_object"}}, "without tools"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(toy, path, more, said):
    status, answer = post(toy, asked(path, **more), path)
    assert status == 400
    assert said in answer["error"]["message"]
    assert answer["error"]["param"] == "prefix_ids"
