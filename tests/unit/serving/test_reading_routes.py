"""The routes that read whole rows: vectors, classes, tags and translations, and what a model without them says."""

import base64
import struct
import threading
import time

import numpy as np
import pytest
import torch

import orrery
from http_wire import Wire
from orrery.data.pictures.png import write_png
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.nn.heads import TokenHead
from served_models import chat_folder, headed_folder, last_head
from serving_toy import post, running, started_once
from tiny_models import TOKENIZER, randomised, saved
from views_toy import language_model_of

KINDS = {
    "decoder": lambda folder: chat_folder(folder, context=128),
    "encoder": lambda folder: saved(folder, "bert"),
    "translator": lambda folder: saved(folder, "rnnsearch"),
    "classifier": lambda folder: headed_folder(folder, mood=last_head("bad", "fine", "good")),
    "entailment": lambda folder: headed_folder(folder, yes=last_head("entailment", "contradiction")),
    "tagger": lambda folder: headed_folder(folder, token=TokenHead.Spec(labels=3, names=("O", "B-X", "I-X"))),
}
ROUTES = {
    "decoder": ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"],
    "encoder": ["/v1/embeddings"],
    "translator": ["/v1/completions", "/v1/translate", "/v1/embeddings"],
    "classifier": ["/v1/completions", "/v1/embeddings", "/v1/classify"],
    "tagger": ["/v1/completions", "/v1/embeddings", "/v1/tag"],
}
BODIES = {
    "/v1/completions": {"prompt": "a", "max_tokens": 1},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
    "/v1/responses": {"input": "a", "max_output_tokens": 1},
    "/v1/messages": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
    "/v1/embeddings": {"input": "a"},
    "/v1/classify": {"input": "a"},
    "/v1/tag": {"input": "a"},
    "/v1/translate": {"input": "a"},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with started_once(KINDS, tmp_path_factory.mktemp) as of:
        yield of


def ask(server, path, status=200, **body):
    with Wire(int(server.url.rsplit(":", 1)[1])) as wire:
        reply = wire.ask("POST", path, {"model": "toy", **body})
        assert reply.status == status, reply.body
        assert wire.ask("GET", "/health").status == 200
        return reply.json if status == 200 else reply.error


@pytest.mark.parametrize("kind", ROUTES)
def test_a_model_says_which_routes_it_has_and_refuses_the_others(servers, kind):
    server, _ = servers(kind)
    with Wire(int(server.url.rsplit(":", 1)[1])) as wire:
        assert wire.ask("GET", "/v1/models").json["data"][0]["routes"] == ROUTES[kind]
    for path, body in BODIES.items():
        if path in ROUTES[kind]:
            assert ask(server, path, **body)["model"] == "toy"
        else:
            error = ask(server, path, 400, **body)
            if path != "/v1/messages":  # whose errors have no code
                assert error["code"] in ("unsupported_model", "no_chat_template")
            assert "template" in error["message"] or ROUTES[kind][0] in error["message"]


@pytest.mark.parametrize("kind", ["decoder", "encoder", "translator"])
def test_vectors_have_length_1_and_are_the_mean_of_the_final_states(servers, kind):
    server, lm = servers(kind)
    texts = ["the cat", "a dog on the mat", "x"]
    answer = ask(server, "/v1/embeddings", input=texts)
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    for one, text in zip(answer["data"], texts, strict=True):
        mean = lm.hidden([lm.tokenizer.around(lm.tokenizer.encode(text)).ids])[0].mean(0)
        assert one["embedding"] == pytest.approx((mean / mean.norm()).tolist(), abs=1e-5)
    assert answer["usage"]["prompt_tokens"] == sum(len(lm.tokenizer.encode(text)) for text in texts)
    raw = base64.b64decode(ask(server, "/v1/embeddings", input="x", encoding_format="base64")["data"][0]["embedding"])
    assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(answer["data"][2]["embedding"], abs=1e-6)
    ids = [lm.tokenizer.encode(text) for text in texts]
    by_ids = ask(server, "/v1/embeddings", input=ids, dimensions=len(answer["data"][0]["embedding"]))
    assert np.allclose(
        [one["embedding"] for one in by_ids["data"]], [one["embedding"] for one in answer["data"]], atol=1e-6
    )


def test_texts_that_cannot_be_read_are_named(servers):
    server, lm = servers("decoder")
    too_long = ask(server, "/v1/embeddings", 400, input=["a", "the cat " * 100])
    assert (too_long["param"], too_long["code"]) == ("input", "context_length_exceeded")
    assert "input 2" in too_long["message"]
    assert too_long["message"].endswith('shorten it, or send "truncation": true, which leaves out its end')
    assert "--" not in too_long["message"]
    size = lm.model.spec.vocabulary
    assert ask(server, "/v1/embeddings", 400, input=[[5], [size]])["param"] == "input"
    assert ask(server, "/v1/embeddings", 400, input="a", dimensions=3)["param"] == "dimensions"


def test_what_is_too_long_is_cut_where_the_request_says_so(servers):
    server, lm = servers("decoder")
    text = "the cat " * 100
    ids = lm.tokenizer.encode(text)
    assert len(ids) > lm.context
    answer = ask(server, "/v1/embeddings", input=["a", text], truncation=True)
    by_ids = ask(server, "/v1/embeddings", input=[lm.tokenizer.encode("a"), ids], truncation=True)
    short = ask(server, "/v1/embeddings", input=[lm.tokenizer.encode("a"), ids[: lm.context]])
    for one in (answer, by_ids):
        assert one["usage"] == short["usage"]
        for own, other in zip(one["data"], short["data"], strict=True):
            assert own["embedding"] == pytest.approx(other["embedding"], abs=1e-6)
    refused = ask(server, "/v1/embeddings", 400, input="a", truncate_prompt_tokens=5)
    assert (refused["param"], "truncation" in refused["message"]) == ("truncate_prompt_tokens", True)
    assert ask(server, "/v1/embeddings", input="a", truncate_prompt_tokens=-1)["data"]


@pytest.mark.parametrize(
    ("kind", "path"), [("translator", "/v1/translate"), ("classifier", "/v1/classify"), ("tagger", "/v1/tag")]
)
def test_what_a_client_can_do_about_a_text_that_is_too_long_is_a_field(servers, kind, path):
    server, _ = servers(kind)
    message = ask(server, path, 400, input="the cat " * 300)["message"]
    assert ('"truncation": true' in message) == (path != "/v1/translate")
    assert ('"stride": 16' in message) == (path == "/v1/tag")
    assert "--" not in message
    assert "=" not in message
    if path != "/v1/translate":
        assert ask(server, path, input="the cat " * 300, truncation=True)["data"]


def test_classes_are_those_of_the_pipeline(servers):
    server, lm = servers("classifier")
    answer = ask(server, "/v1/classify", input=["the cat", {"text": "a dog", "text_pair": "a mat"}])
    pipe = orrery.pipeline("text-classification", lm)
    expected = pipe(["the cat", {"text": "a dog", "text_pair": "a mat"}], top_k=None)
    for one, own in zip(answer["data"], expected, strict=True):
        assert [label["label"] for label in one["labels"]] == [label["label"] for label in own]
        assert [label["score"] for label in one["labels"]] == pytest.approx([label["score"] for label in own], abs=1e-6)
        assert sum(label["score"] for label in one["labels"]) == pytest.approx(1)
    assert [len(one["labels"]) for one in ask(server, "/v1/classify", input="a", top_k=1)["data"]] == [1]
    for bad, param in (
        ({"input": []}, "input"),
        ({"input": {"text": "a"}}, "input"),
        ({"input": "a", "top_k": 0}, "top_k"),
        ({"input": "a", "multi_label": True}, "multi_label"),
        ({"input": "the cat " * 100}, "input"),
    ):
        assert ask(server, "/v1/classify", 400, **bad)["param"] == param
    assert ask(server, "/v1/classify", input="the cat " * 100, truncation=True)["data"]


def test_labels_that_a_client_names(servers):
    server, lm = servers("entailment")
    labels = ask(server, "/v1/classify", input="a", candidate_labels=["cat", "dog"])["data"][0]["labels"]
    settings = {"candidate_labels": ["cat", "dog"]}
    expected = orrery.pipeline("zero-shot-classification", lm)("a", **settings)
    assert [one["label"] for one in labels] == expected["labels"]
    assert [one["score"] for one in labels] == pytest.approx(expected["scores"], abs=1e-6)


def test_entities_are_those_of_the_pipeline(servers):
    server, lm = servers("tagger")
    text = "the cat sat on the mat"
    rows = ask(server, "/v1/tag", input=[text, "a dog"], ignore_labels=[])["data"]
    pipe = orrery.pipeline("token-classification", lm, aggregation_strategy="simple", ignore_labels=())
    for one, own in zip(rows, pipe([text, "a dog"]), strict=True):
        assert [entity["start"] for entity in one["entities"]] == [entity["start"] for entity in own]
        assert [entity["entity_group"] for entity in one["entities"]] == [entity["entity_group"] for entity in own]
        assert [entity["score"] for entity in one["entities"]] == pytest.approx(
            [float(e["score"]) for e in own], abs=1e-6
        )
    assert ask(server, "/v1/tag", input="the cat " * 100, stride=4)["data"][0]["entities"] is not None
    assert ask(server, "/v1/tag", 400, input="the cat " * 100)["code"] == "context_length_exceeded"
    assert ask(server, "/v1/tag", 400, input="a", stride=4, aggregation_strategy="none")["param"] == "stride"


def test_translations_are_those_of_the_library(servers):
    server, lm = servers("translator")
    texts = ["the cat", "a dog", "the cat"]
    rows = ask(server, "/v1/translate", input=texts, num_beams=3, max_tokens=9)["data"]
    assert [one["text"] for one in rows] == lm.translate(texts, num_beams=3, max_new_tokens=9)
    greedy = ask(server, "/v1/translate", input="the cat", num_beams=1, max_tokens=9)["data"][0]["text"]
    assert greedy == ask(server, "/v1/completions", prompt="the cat", max_tokens=9, temperature=0)["choices"][0]["text"]
    assert ask(server, "/v1/translate", 400, input="a", num_beams=1000)["param"] == "num_beams"
    assert ask(server, "/v1/translate", 400, input="a", stream=True)["param"] == "stream"
    assert ask(server, "/v1/translate", 400, input="the cat " * 100)["code"] == "context_length_exceeded"


def test_who_leaves_ends_the_reading_and_others_are_answered(servers):
    server, _ = servers("encoder")
    port = int(server.url.rsplit(":", 1)[1])
    expected = ask(server, "/v1/embeddings", input="the cat")["data"]
    many = {"model": "toy", "input": ["the cat sat on the mat and the log"] * 2_000}
    wires = [Wire(port) for _ in range(3)]
    threads = [threading.Thread(target=wire.ask, args=("POST", "/v1/embeddings", many)) for wire in wires]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    for wire in wires:
        wire.socket.shutdown(2)
        wire.close()
    for thread in threads:
        thread.join()
    assert ask(server, "/v1/embeddings", input="the cat")["data"] == expected
    end = time.monotonic() + 20
    while server.served.gauges()["orrery_requests_inside"] and time.monotonic() < end:
        time.sleep(0.01)
    assert server.served.gauges()["orrery_requests_inside"] == 0


@pytest.mark.parametrize("family", ["lstm", "luong", "t5"])
def test_recurrent_models_and_encoder_decoders_are_served_as_the_library_writes(tmp_path, family):
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": TOKENIZER.size}
    save_model(tmp_path / "m", randomised(rules.spec(config).build().eval()), family, config, TOKENIZER)
    lm = orrery.load(tmp_path / "m", "cpu", say=str)
    with running(tmp_path / "m", dtype="float32") as server:
        written = ask(server, "/v1/completions", prompt="the cat", max_tokens=6, temperature=0)["choices"][0]["text"]
        assert written == lm.generate("the cat", max_new_tokens=6, temperature=0)
        if lm.model.spec.reads_source:
            translated = ask(server, "/v1/translate", input="the cat", max_tokens=6)["data"][0]["text"]
            assert translated == lm.translate(["the cat"], max_new_tokens=6)[0]


def test_a_model_of_pictures_answers_its_own_route(tmp_path):
    """A client sends the content of a picture: nothing of the server's machine is opened for it."""
    lm = language_model_of("vit")
    save_own(tmp_path / "m", lm.model)
    (tmp_path / "secret.png").write_bytes(write_png(torch.zeros(3, 9, 9, dtype=torch.uint8)))
    content = "data:image/png;base64," + base64.b64encode((tmp_path / "secret.png").read_bytes()).decode()
    with running(tmp_path / "m", dtype="float32") as server:
        status, answer = post(server, {"input": [content, content], "top_k": 1}, "/v1/tasks/image-classification")
        assert status == 200
        assert [len(each["labels"]) for each in answer["data"]] == [1, 1]
        for given in (str(tmp_path / "secret.png"), "http://127.0.0.1/x.png", "data:image/png;base64,!!"):
            status, answer = post(server, {"input": given}, "/v1/tasks/image-classification")
            assert status == 400
        status, answer = post(server, {"input": str(tmp_path / "secret.png")}, "/v1/classify")
        assert status == 400
        assert "/v1/tasks/image-classification" in answer["error"]["message"]
