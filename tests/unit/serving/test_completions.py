import json

import pytest
import torch

from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from serving_toy import CONTEXT, chat_model, events, post, running


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model")) as server:
        yield server


def alone(toy, ids, tokens, temperature=0.0, seed=0, stop=()):
    lm = toy.served.lm
    limits = Limits(tokens, lm.context, lm.end, stop)
    how = {"sampler": sampler(temperature=temperature, vocabulary=lm.tokenizer.size), "seed": seed}
    return generate(lm.model, [ids], lm.tokenizer, limits, **how)[0]


def test_a_text_is_continued_as_by_the_library(toy):
    ids = toy.served.lm.tokenizer.encode("the cat")
    status, answer = post(toy, {"model": "toy", "prompt": "the cat", "max_tokens": 7, "temperature": 0})
    assert status == 200
    assert answer["object"] == "text_completion"
    (choice,) = answer["choices"]
    assert choice == {"index": 0, "text": alone(toy, ids, 7).text, "logprobs": None, "finish_reason": "length"}
    assert answer["usage"]["prompt_tokens"] == len(ids)
    assert answer["usage"]["completion_tokens"] == 7


def test_each_of_n_answers_has_a_seed_of_its_own_and_prompts_keep_their_order(toy):
    rows = [[5, 9, 31], [7, 8, 12, 80]]
    body = {"prompt": rows, "n": 3, "seed": 11, "max_tokens": 6, "temperature": 1.0, "top_p": 1.0}
    choices = post(toy, body)[1]["choices"]
    wanted = [alone(toy, row, 6, 1.0, 11 + i).text for row in rows for i in range(3)]
    assert [choice["text"] for choice in choices] == wanted
    assert [choice["index"] for choice in choices] == list(range(6))


def test_a_stream_says_what_the_whole_says(toy):
    body = {"prompt": "the cat", "max_tokens": 9, "seed": 3, "temperature": 1, "logprobs": 2, "echo": True, "n": 2}
    whole = post(toy, body)[1]
    *parts, last = events(post(toy, {**body, "stream": True, "stream_options": {"include_usage": True}})[1])
    assert last == "[DONE]"
    pieces = [json.loads(part) for part in parts]
    assert pieces[-1]["usage"] == {**whole["usage"], "prompt_tokens_details": {"cached_tokens": 0}}
    assert pieces[-1]["choices"] == []
    assert all(part["usage"] is None for part in pieces[:-1])
    for index in (0, 1):
        own = [choice for part in pieces for choice in part["choices"] if choice["index"] == index]
        assert "".join(choice["text"] for choice in own) == whole["choices"][index]["text"]
        assert [choice["finish_reason"] for choice in own][-1] == whole["choices"][index]["finish_reason"]
        told = [choice["logprobs"] for choice in own if choice["logprobs"]]
        for name, values in whole["choices"][index]["logprobs"].items():
            assert [value for one in told for value in one[name]] == values


def test_echo_scores_the_prompt_as_a_full_forward(toy):
    rows = [[5, 9, 31, 70, 71], [7, 8]]
    body = {"prompt": rows, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    choices = post(toy, body)[1]["choices"]
    for row, choice in zip(rows, choices, strict=True):
        with torch.no_grad():
            exact = toy.served.lm.model.logits(torch.tensor([row]))[0].log_softmax(-1)
        own = choice["logprobs"]
        assert own["token_logprobs"][0] is None
        assert own["top_logprobs"][0] is None
        assert len(own["tokens"]) == len(row) + 1
        for place, token in enumerate(row[1:]):
            assert own["token_logprobs"][place + 1] == pytest.approx(float(exact[place, token]), rel=1e-9)
            assert max(own["top_logprobs"][place + 1].values()) == pytest.approx(float(exact[place].max()), rel=1e-9)


def test_the_prompt_alone_is_scored_where_no_token_is_asked_for(toy):
    body = {"prompt": "the cat sat", "echo": True, "logprobs": 0, "max_tokens": 0}
    (choice,) = post(toy, body)[1]["choices"]
    assert choice["text"] == "the cat sat"
    tokens, offsets = choice["logprobs"]["tokens"], choice["logprobs"]["text_offset"]
    assert "".join(tokens) == "the cat sat"
    assert all(choice["text"][a:].startswith(token) for a, token in zip(offsets, tokens, strict=True))


def test_the_best_of_several_is_the_most_probable_a_token(toy):
    body = {"prompt": [5, 9], "seed": 5, "temperature": 1, "max_tokens": 5, "logprobs": 0}
    several = post(toy, {**body, "n": 4})[1]["choices"]
    (best,) = post(toy, {**body, "best_of": 4})[1]["choices"]
    means = [sum(one["logprobs"]["token_logprobs"]) / 5 for one in several]
    assert best["text"] == several[means.index(max(means))]["text"]


def test_a_stop_string_ends_an_answer_wherever_tokens_are_cut(toy):
    ids = toy.served.lm.tokenizer.encode("why?")
    whole = next(text for seed in range(50) if len(text := alone(toy, ids, 40, 1.0, seed).text) > 12)
    seed = next(seed for seed in range(50) if alone(toy, ids, 40, 1.0, seed).text == whole)
    body = {"prompt": "why?", "max_tokens": 40, "seed": seed, "temperature": 1, "stop": [whole[5:8], "never"]}
    (choice,) = post(toy, body)[1]["choices"]
    assert choice["text"] == whole[: whole.index(whole[5:8])]
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize(("begin", "length"), [(n, size) for n in (0, 1, 3, 5, 8) for size in (1, 2, 4)])
@pytest.mark.parametrize("echo", [False, True])
def test_what_a_stop_string_cuts_off_has_no_log_probabilities(toy, begin, length, echo):
    ids = toy.served.lm.tokenizer.encode("why?")
    seed = next(seed for seed in range(50) if len(alone(toy, ids, 40, 1.0, seed).text) > 12)
    whole = alone(toy, ids, 40, 1.0, seed).text
    body = {"prompt": "why?", "max_tokens": 40, "seed": seed, "temperature": 1, "logprobs": 1, "echo": echo}
    uncut = post(toy, body)[1]["choices"][0]["logprobs"]
    stop = whole[begin : begin + length]
    body["stop"] = stop
    (choice,) = post(toy, body)[1]["choices"]
    assert choice["text"] == "why?" * echo + whole[: whole.index(stop)]
    told, ends = choice["logprobs"], 4 + whole.index(stop)
    kept = [place for place, offset in enumerate(uncut["text_offset"]) if offset < ends]
    assert told == {name: [values[place] for place in kept] for name, values in uncut.items()}
    *parts, _ = events(post(toy, {**body, "stream": True})[1])
    streamed = [choice for part in parts for choice in json.loads(part)["choices"]]
    assert "".join(choice["text"] for choice in streamed) == choice["text"]
    for name, values in told.items():
        assert [value for one in streamed if one["logprobs"] for value in one["logprobs"][name]] == values


def test_an_empty_prompt_is_the_beginning_of_a_text(toy):
    assert post(toy, {"prompt": "", "max_tokens": 1})[1]["usage"]["prompt_tokens"] == 1


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 5}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"n": 0}, "n"),
        ({"n": 10**6}, "n"),
        ({"n": True}, "n"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**9}, "prompt"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"logprobs": 10_000}, "logprobs"),
        ({"stop": ["a"] * 1000}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": [3]}, "stop[0]"),
        ({"seed": 2**70}, "seed"),
        ({"logit_bias": {"999999": 1}}, "logit_bias"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 10_001}}, "logit_bias"),
        ({"presence_penalty": 10_001}, "presence_penalty"),
        ({"suffix": "x"}, "suffix"),
        ({"suffix": 5}, "suffix"),
        ({"suffix": "x", "echo": True}, "suffix"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": [-1]}, "prompt[0]"),
        ({"prompt": [10**6]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": None}, "prompt"),
        ({"prompt": [[1]] * 129}, "prompt"),
        ({"prompt": [1] * (CONTEXT + 1)}, "prompt"),
        ({"prompt": [1] * CONTEXT, "max_tokens": 1}, "prompt"),
        ({"prompt": "a" * 100_000}, "prompt"),
        ({"prompt": "a" * 1_500_000}, "prompt"),
    ],
)
def test_what_cannot_be_done_is_refused_by_the_name_of_its_field(toy, change, param):
    status, answer = post(toy, {"model": "toy", "prompt": "the cat", **change})
    assert status == 400, answer
    assert answer["error"]["param"] == param, answer
    assert answer["error"]["type"] == "invalid_request_error"


def test_what_does_not_fit_is_told_with_both_numbers(toy):
    error = post(toy, {"prompt": [1] * 100, "max_tokens": 29})[1]["error"]
    assert error["code"] == "context_length_exceeded"
    assert "maximum context length is 128 tokens" in error["message"]
    assert "129 tokens" in error["message"]
    assert post(toy, {"prompt": [1] * 100, "max_tokens": 28})[0] == 200


def test_another_model_is_not_found_and_unknown_fields_are_ignored(toy):
    status, answer = post(toy, {"model": "gpt-4", "prompt": "a"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert post(toy, {"prompt": "a", "max_tokens": 1, "no_such_field": [{}]})[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"a"',
        b'{"prompt": NaN}',
        b'{"prompt": "a", "temperature": Infinity}',
        b'{"prompt": "a", "temperature": 1e999}',
        b'{"prompt": "a", "n": ' + b"9" * 5_000 + b"}",
        b'{"prompt": "a", "temperature": ' + b"9" * 400 + b"}",
        b'{"prompt": "\xff"}',
        b'{"prompt": "\\ud800"}',
        b'{"prompt": "a", "prompt": "b"}',
        b'{"\\ud800": 1, "prompt": "a"}',
        b"[" * 100_000,
        b'{"prompt": "a", "x": ' + b"[" * 70 + b"]" * 70 + b"}",
        b'\xef\xbb\xbf{"prompt": "a"}',
    ],
)
def test_a_body_that_is_no_strict_json_is_refused(toy, body):
    status, answer = post(toy, body)
    assert status == 400, answer
    assert set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(("kept", "cached"), [(None, [0, 40]), (0, [0, 0])])
def test_what_was_read_for_others_is_told_and_can_be_switched_off(tmp_path, kept, cached):
    """``cached_tokens`` lets a client find out what another one has sent, unless nothing is kept."""
    ids = [5 + number % 60 for number in range(41)]
    with running(chat_model(tmp_path / "model"), kept_tokens=kept) as toy:
        told = [post(toy, {"prompt": ids, "max_tokens": 1})[1]["usage"]["prompt_tokens_details"] for _ in range(2)]
    assert told == [{"cached_tokens": number} for number in cached]
