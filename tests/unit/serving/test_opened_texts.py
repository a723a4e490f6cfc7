"""A model whose tokenizer puts tokens around a text: behind every route it reads what it reads in Python."""

import json

import pytest

from serving_toy import chat_model, post, running

TEXT = "the cat sat"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = chat_model(tmp_path_factory.mktemp("toy") / "model")
    made = json.loads((folder / "tokenizer.json").read_text())
    start = next(token for token in made["added_tokens"] if token["content"] == "<|endoftext|>")
    around = [{"SpecialToken": {"id": start["content"], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    named = {start["content"]: {"id": start["content"], "ids": [start["id"]], "tokens": [start["content"]]}}
    template = {"type": "TemplateProcessing", "single": around, "pair": around, "special_tokens": named}
    (folder / "tokenizer.json").write_text(json.dumps({**made, "post_processor": template}))
    with running(folder) as server:
        yield server


def test_a_completion_is_the_one_of_the_library(toy):
    lm = toy.served.lm
    expected = lm.generations([TEXT], max_new_tokens=7, temperature=0)[0].text
    for prompt in (TEXT, lm.tokenizer.frame(TEXT).ids):
        answer = post(toy, {"prompt": prompt, "max_tokens": 7, "temperature": 0})[1]
        assert answer["choices"][0]["text"] == expected
        assert answer["usage"]["prompt_tokens"] == 1 + len(lm.tokenizer.encode(TEXT))
    unopened = post(toy, {"prompt": lm.tokenizer.encode(TEXT), "max_tokens": 7, "temperature": 0})[1]
    assert unopened["usage"]["prompt_tokens"] == len(lm.tokenizer.encode(TEXT))


@pytest.mark.parametrize("stream", [False, True])
def test_the_echo_of_a_text_is_the_text_and_its_first_token_is_predicted(toy, stream):
    lm = toy.served.lm
    body = {"prompt": TEXT, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 0, "stream": stream}
    answer = post(toy, body)[1]
    if stream:
        parts = [json.loads(line.removeprefix("data: ")) for line in answer.split("\n\n") if line.startswith("data: {")]
        told = [choice["logprobs"] for part in parts for choice in part["choices"] if choice["logprobs"]]
        logprobs = {name: [value for one in told for value in one[name]] for name in told[0]}
    else:
        logprobs = answer["choices"][0]["logprobs"]
    score = lm.score(TEXT)
    assert logprobs["tokens"][:-1] == score.tokens
    assert logprobs["token_logprobs"][:-1] == pytest.approx(score.log_probabilities)
    assert logprobs["text_offset"][0] == 0
    assert "".join(logprobs["tokens"][:-1]) == TEXT


def test_tokenize_tells_what_the_model_reads_or_the_text_alone(toy):
    tokenizer = toy.served.lm.tokenizer
    for extra, expected in (
        ({}, tokenizer.frame(TEXT).ids),
        ({"add_special_tokens": True}, tokenizer.frame(TEXT).ids),
        ({"add_special_tokens": False}, tokenizer.encode(TEXT)),
    ):
        answer = post(toy, {"prompt": TEXT, **extra}, "/tokenize")[1]
        assert answer["tokens"] == expected
        assert answer["count"] == len(expected)


def test_a_chat_brings_its_own_tokens(toy):
    said = [{"role": "user", "content": TEXT}]
    expected = toy.served.lm.chat_ids(said, prompt=True).ids
    assert post(toy, {"messages": said}, "/tokenize")[1]["tokens"] == expected
    answer = post(toy, {"messages": said, "max_tokens": 1}, "/v1/chat/completions")[1]
    assert answer["usage"]["prompt_tokens"] == len(expected)
