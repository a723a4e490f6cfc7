"""``/v1/recommend``: a model over items says what comes next, and others refuse the route."""

import pytest
import torch

import orrery
from http_wire import Wire
from orrery.exchange.saving.save import save_model
from orrery.text.train import train_tokenizer
from serving_toy import running
from tiny_models import CONFIGS, saved, tiny


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("items")
    tokenizer = train_tokenizer("word", ["tent lamp rope stove boots"])
    config = {**CONFIGS["gpt2"], "vocab_size": tokenizer.size}
    save_model(folder, tiny("gpt2", torch.float32, **config), "gpt2", config, tokenizer)
    with running(folder, dtype="float32") as found:
        yield found, orrery.pipeline("next-item", folder, device="cpu")


def ask(server, **body):
    with Wire(int(server.url.rsplit(":", 1)[1])) as wire:
        return wire.ask("POST", "/v1/recommend", {"model": "toy", **body})


def test_the_answer_is_that_of_the_pipeline(server):
    found, pipe = server
    reply = ask(found, input=["tent\nlamp", "rope"], top_k=2)
    assert reply.status == 200, reply.body
    items = [one["items"] for one in reply.json["data"]]
    wanted = [pipe(["tent", "lamp"], top_k=2), pipe(["rope"], top_k=2)]
    assert [[one["item"] for one in each] for each in items] == [[one["item"] for one in each] for each in wanted]
    assert [len(each) for each in items] == [2, 2]
    assert [one["index"] for one in reply.json["data"]] == [0, 1]


def test_bad_histories_are_refused_and_the_server_stays(server):
    found, _ = server
    for body, told in (
        ({"input": "tent, kettle"}, "does not know the item 'kettle'"),
        ({"input": " "}, "has no item"),
        ({"input": "tent", "top_k": 0}, "top_k"),
        ({"input": [["tent"]]}, "input"),
    ):
        reply = ask(found, **body)
        assert reply.status == 400, body
        assert told in str(reply.error), body
    assert ask(found, input="tent, kettle", skip_unknown=True).status == 200


def test_a_model_of_pieces_of_text_has_no_such_route(tmp_path):
    with running(saved(tmp_path / "llama", "llama"), dtype="float32") as found:
        reply = ask(found, input="the")
        assert (reply.status, reply.error["code"]) == (400, "unsupported_model")
