"""Paths of llama.cpp's, vLLM's and LM Studio's servers, as their clients ask them."""

import json

import pytest

from http_wire import Wire
from orrery.serving.errors import AsciiJson
from orrery.serving.routes import tokens
from orrery.serving.schema.llamacpp import USUAL
from served_models import chat_folder
from serving_toy import good, post, running

SAID = [{"role": "user", "content": "the cat"}]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_folder(tmp_path_factory.mktemp("models") / "tiny", context=128), "float32") as server:
        yield server


def get(toy, path):
    with Wire(int(toy.url.rsplit(":", 1)[1])) as wire:
        return wire.ask("GET", path)


def same(**more):
    return {"prompt": "the cat", "seed": 3, "repeat_penalty": 1.1, **more}


def test_a_completion_of_llamacpp_is_that_of_openai_with_its_own_draws(toy):
    plain = good(toy, "/v1/completions", **same(max_tokens=9, **USUAL))["choices"][0]["text"]
    answer = good(toy, "/completion", **same(n_predict=9))
    assert (answer["content"], answer["stop"], answer["tokens_predicted"]) == (plain, True, 9)
    assert (answer["stop_type"], answer["tokens_evaluated"]) == (
        "limit",
        len(toy.served.lm.tokenizer.encode("the cat")),
    )
    other = good(toy, "/v1/completions", **same(max_tokens=9))["choices"][0]["text"]
    assert other != plain  # the draws are other ones
    chosen = good(toy, "/completion", **same(n_predict=9, temperature=1, top_k=0, top_p=1, min_p=0))
    assert chosen["content"] == other


def test_its_stream_ends_with_the_counts_and_without_a_mark(toy):
    whole = good(toy, "/completion", **same(n_predict=9))
    events = [
        json.loads(one[6:]) for one in good(toy, "/completion", **same(n_predict=9, stream=True)).split("\n\n")[:-1]
    ]
    assert "".join(one["content"] for one in events) == whole["content"]
    assert [one["stop"] for one in events] == [False] * (len(events) - 1) + [True]
    assert events[-1]["tokens_predicted"] == 9


def test_it_goes_on_to_the_end_of_the_context_and_says_which_string_ended_it(toy):
    text = good(toy, "/completion", **same(n_predict=-1, ignore_eos=True))
    assert text["tokens_predicted"] + text["tokens_evaluated"] == toy.served.lm.context
    some = text["content"][3:5]
    stopped = good(toy, "/completion", **same(n_predict=-1, ignore_eos=True, stop=["%%%%", some]))
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", some)
    assert stopped["content"] == text["content"].partition(some)[0]


@pytest.mark.parametrize(("path", "body", "said"), [
    ("/completion", {}, "prompt"), ("/completion", {"prompt": ["a", "b"]}, "/v1/completions"),
    ("/completion", {"prompt": "a", "n_probs": 3}, "n_probs"),
    ("/completion", {"prompt": "a", "grammar": "x"}, "grammar"),
    ("/completion", {"prompt": "a", "xtc_probability": 0.5}, "xtc_probability"),
    ("/completion", {"prompt": "a", "repeat_penalty": -1}, "repeat_penalty"),
    ("/completion", {"prompt": "a", "n": 2}, "one"),
    ("/infill", {"input_prefix": "a", "input_suffix": "b"}, "suffix"),
    ("/infill", {"input_prefix": "a", "input_extra": [{"text": "b"}]}, "input_extra"),
    ("/apply-template", {"messages": SAID, "chat_template": "x"}, "chat_template"), ("/embedding", {}, "content"),
    ("/tokenize", {"prompt": "a", "content": "b"}, "prompt"),
    ("/tokenize", {"content": "a", "parse_special": True}, "ordinary text"),
    ("/tokenize", {"messages": SAID, "add_generation_prompt": False}, "add_generation_prompt"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused(toy, path, body, said):
    status, answer = post(toy, body, path)
    assert (status, said in str(answer["error"])) == (400, True), answer


def test_texts_become_ids_in_each_convention(toy):
    tokenizer, text = toy.served.lm.tokenizer, "the cat  on"
    ids = tokenizer.encode(text)
    assert good(toy, "/tokenize", content=text) == {"tokens": ids}
    assert good(toy, "/tokenize", content=text, add_special=True) == {"tokens": tokenizer.frame(text).ids}
    pieces = good(toy, "/tokenize", content=text, with_pieces=True)["tokens"]
    assert [one["id"] for one in pieces] == ids
    assert "".join(one["piece"] for one in pieces) == text
    (spans,) = good(toy, "/tokenize", inputs=text)
    assert [one["id"] for one in spans] == tokenizer.frame(text).ids
    assert [(one["id"], one["start"], one["stop"]) for one in spans if not one["special"]] == [
        *map(tuple, tokenizer.spans(text))
    ]
    assert len(good(toy, "/tokenize", inputs=[text, "a"], add_special_tokens=False)) == 2
    assert good(toy, "/detokenize", tokens=ids) == {"prompt": text, "content": text}


def test_a_template_tells_what_a_chat_reads(toy):
    prompt = good(toy, "/apply-template", messages=SAID)["prompt"]
    ids = good(toy, "/tokenize", messages=SAID)["tokens"]
    assert prompt == toy.served.lm.tokenizer.decode(ids, special=True)
    assert "the cat" in prompt
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert "look" in good(toy, "/apply-template", messages=SAID, tools=[tool])["prompt"]
    assert len(good(toy, "/tokenize", messages=SAID, tools=[tool])["tokens"]) > len(ids)


def test_vectors_of_llamacpp_are_those_of_openai(toy):
    own = good(toy, "/v1/embeddings", input=["a", "the cat"])["data"]
    theirs = good(toy, "/embedding", content=["a", "the cat"])
    assert [one["embedding"][0] for one in theirs] == [one["embedding"] for one in own]


def test_what_clients_ask_first(toy):
    props = get(toy, "/props").json
    assert props["default_generation_settings"]["n_ctx"] == 128
    assert props["chat_template"] == toy.served.template.source
    assert get(toy, "/version").json["version"]
    assert get(toy, "/ping").status == 200
    (card,) = get(toy, "/api/v0/models").json["data"]
    assert (card["id"], card["type"], card["state"], card["max_context_length"]) == ("toy", "llm", "loaded", 128)
    assert get(toy, "/api/v0/models/toy").json == card
    assert get(toy, "/api/v0/models/other").status == 404
    # Zed reads gguf and mlx, and offers tools where the model has tool_use
    assert (card["compatibility_type"], card["capabilities"]) == ("mlx", ["tool_use"])
    for path, other in (("/slots", "/metrics"), ("/api/v1/chat/completions", "/v1/chat/completions")):
        assert other in str(get(toy, path).json["error"])


def test_lm_studios_own_paths_answer_as_those_of_openai(toy):
    chat = {"messages": [{"role": "user", "content": "the cat"}], "max_tokens": 4, "temperature": 0}
    for path, body in (
        ("chat/completions", chat),
        ("completions", {"prompt": "a", "max_tokens": 4, "temperature": 0}),
        ("embeddings", {"input": "a"}),
    ):
        own, theirs = (good(toy, f"{begin}/{path}", **body) for begin in ("/v1", "/api/v0"))
        assert own.keys() == theirs.keys()
        assert [own.get(part) for part in ("data", "usage")] == [theirs.get(part) for part in ("data", "usage")]


@pytest.mark.parametrize(("path", "body", "param"), [
    ("/infill", {"input_prefix": ["x"], "input_suffix": "b"}, "input_prefix"),
    ("/infill", {"input_prefix": "a", "input_suffix": {"a": 1}}, "input_suffix"),
    ("/completion", {"prompt": [1, 2], "input_prefix": "a"}, "prompt"),
    ("/completion", {"prompt": "a", "n_predict": 0}, "n_predict"),
    ("/apply-template", {"messages": SAID, "chat_template_kwargs": {"self": 1}}, "chat_template_kwargs.self"),
    ("/tokenize", {"messages": SAID, "chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
])  # fmt: skip
def test_a_field_of_another_type_is_named(toy, path, body, param):
    status, answer = post(toy, body, path)
    assert (status, answer["error"]["param"]) == (400, param)


@pytest.mark.parametrize("asked", [{"content": "the cat sat", "with_pieces": True}, {"inputs": ["the cat sat", "x"]}])
def test_many_tokens_are_written_in_parts_that_let_others_run(toy, monkeypatch, asked):
    whole = good(toy, "/tokenize", **asked)
    at_once, render = [], AsciiJson.render
    monkeypatch.setattr(AsciiJson, "render", lambda own, told: (at_once.append(told), render(own, told))[1])
    for size in (1, 2, 3, 1_000):
        monkeypatch.setattr(tokens, "AT_ONCE", size)
        assert good(toy, "/tokenize", **asked) == whole
    assert not at_once
    assert good(toy, "/tokenize", content="") == {"tokens": []}
