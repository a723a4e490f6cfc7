"""Bodies of text-embeddings-inference and of Hugging Face's inference clients, and vLLM's scores of pairs."""

import json

import numpy as np
import pytest
import torch

from http_wire import Wire
from served_models import headed_folder, last_head
from serving_toy import good, post, running, started_once
from tiny_models import saved

TEXTS = ["the cat", "a dog on the mat", "x"]


KINDS = {
    "encoder": lambda folder: saved(folder, "bert"),
    "classifier": lambda folder: headed_folder(folder, own=last_head("bad", "fine", "good")),
    "ranker": lambda folder: headed_folder(folder, own=last_head("fits")),
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with started_once(KINDS, tmp_path_factory.mktemp) as of:
        yield of


def cosine(one, other):
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize("path", ["/embed", "/"])
def test_vectors_are_those_of_v1_embeddings(servers, path):
    server, lm = servers("encoder")
    own = [one["embedding"] for one in good(server, "/v1/embeddings", input=TEXTS)["data"]]
    assert np.allclose(good(server, path, inputs=TEXTS), own, atol=1e-6)
    assert np.allclose(good(server, path, inputs=TEXTS[0], normalize=True, truncate=False), own[:1], atol=1e-6)
    ids = [lm.tokenizer.encode(text) for text in TEXTS]
    assert np.allclose(
        good(server, path, inputs=ids), [one["embedding"] for one in good(server, "/v1/embeddings", input=ids)["data"]]
    )
    plain = good(server, path, inputs=TEXTS, normalize=False)
    assert np.allclose(plain, lm.embed(TEXTS, normalise=False).tolist(), atol=1e-5)
    assert not np.allclose(np.linalg.norm(plain, axis=1), 1, atol=1e-2)


@pytest.mark.parametrize("path", ["/similarity", "/"])
def test_sentences_are_compared_by_the_cosine_of_their_vectors(servers, path):
    server, lm = servers("encoder")
    said = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    first, *others = lm.embed(TEXTS).tolist()
    assert good(server, path, inputs=said) == pytest.approx([cosine(first, one) for one in others], abs=1e-5)
    assert good(server, path, inputs=said, parameters={"truncate": True})


def test_labels_come_for_a_text_a_pair_and_lists_of_them(servers):
    server, _ = servers("classifier")
    pair = {"text": TEXTS[0], "text_pair": TEXTS[1]}
    text, two = (good(server, "/v1/classify", input=one)["data"][0]["labels"] for one in (TEXTS[0], pair))
    assert good(server, "/predict", inputs=TEXTS[0]) == text
    assert good(server, "/predict", inputs=TEXTS[:1]) == text
    assert good(server, "/predict", inputs=TEXTS[:2]) == two
    several = good(server, "/predict", inputs=[TEXTS[:1], TEXTS[:2]])
    assert [[one["label"] for one in row] for row in several] == [[one["label"] for one in row] for row in (text, two)]
    assert several[0][0]["score"] == pytest.approx(text[0]["score"], abs=1e-5)
    assert good(server, "/", inputs=TEXTS[0]) == text
    assert good(server, "/", inputs=TEXTS[0], parameters={}) == [text]  # Hugging Face's own form
    assert good(server, "/", inputs=TEXTS[0], parameters={"top_k": 1}) == [text[:1]]
    raw = {one["label"]: one["score"] for one in good(server, "/predict", inputs=TEXTS[0], raw_scores=True)}
    made = torch.tensor([raw[one["label"]] for one in text], dtype=torch.float64).softmax(0)
    assert made.tolist() == pytest.approx([one["score"] for one in text], abs=1e-5)


def test_texts_are_put_in_order_with_a_sigmoid_or_without(servers):
    server, lm = servers("ranker")
    scores = lm.score_pairs([("the cat", text) for text in TEXTS]).tolist()
    order = sorted(range(3), key=lambda number: -scores[number])
    for path in ("/rerank", "/"):
        ranked = good(server, path, query="the cat", texts=TEXTS, return_text=True)
        assert [one["index"] for one in ranked] == order
        assert [one["text"] for one in ranked] == [TEXTS[number] for number in order]
        assert [one["score"] for one in ranked] == pytest.approx([scores[number] for number in order], abs=1e-5)
    raw = good(server, "/rerank", query="the cat", texts=TEXTS, raw_scores=True, truncate=True)
    assert "text" not in raw[0]
    assert len(good(server, "/rerank", query="the cat", texts=TEXTS, top_n=2)) == 2
    assert torch.tensor([one["score"] for one in raw]).sigmoid().tolist() == pytest.approx(
        [one["score"] for one in ranked], abs=1e-5
    )
    assert [one["index"] for one in good(server, "/rerank", query="the cat", documents=TEXTS)["results"]] == order


@pytest.mark.parametrize("kind", ["ranker", "encoder"])
def test_pairs_have_scores_under_each_of_vllms_names(servers, kind):
    server, lm = servers(kind)
    vectors = lm.embed(TEXTS).tolist()
    expected = [cosine(vectors[0], one) for one in vectors[1:]]
    if kind == "ranker":
        expected = lm.score_pairs([(TEXTS[0], text) for text in TEXTS[1:]]).tolist()
    for first, second in (("text_1", "text_2"), ("queries", "documents"), ("data_1", "data_2")):
        for asked in (TEXTS[0], TEXTS[:1], [TEXTS[0]] * 2):
            answer = good(server, "/v1/score", model="toy", **{first: asked, second: TEXTS[1:]})
            assert [one["score"] for one in answer["data"]] == pytest.approx(expected, abs=1e-5)
    assert good(server, "/score", text_1="a", text_2="b")["usage"]["total_tokens"] > 0


@pytest.mark.parametrize(("kind", "path", "body", "said"), [
    ("encoder", "/embed", {}, "inputs"), ("encoder", "/embed", {"inputs": ""}, "inputs"),
    ("encoder", "/embed", {"inputs": "a", "truncation_direction": "left"}, "truncation_direction is not supported"),
    ("encoder", "/embed", {"inputs": "a", "dimensions": 3}, "others"),
    ("encoder", "/embed", {"inputs": "a", "prompt_name": "x"}, "prompt_name: no prompt is called"),
    ("encoder", "/embed", {"inputs": "the cat " * 4000}, '"truncate": true'),
    ("encoder", "/embed", {"inputs": "a", "encoding_format": "base64"}, "/v1/embeddings"),
    ("encoder", "/predict", {"inputs": "a"}, "/v1/embeddings"),
    ("encoder", "/embed", {"inputs": "a", "parameters": {"top_k": 1}}, "parameters is not supported"),
    ("classifier", "/predict", {"inputs": "a", "parameters": {"top_k": "x"}}, "top_k"),
    ("classifier", "/predict", {"inputs": "a", "parameters": {"depth": 1}}, "depth"),
    ("classifier", "/predict", {"inputs": "a", "parameters": {"batch_size": 3}}, "parameters.batch_size"),
    ("classifier", "/predict", {"inputs": "a", "parameters": {"self": 3}}, "parameters.self"),
    ("classifier", "/predict", {"inputs": ["a", "b", "c"]}, "inputs"),
    ("classifier", "/predict", {"inputs": 5}, "inputs"),
    ("encoder", "/similarity", {"inputs": {"source_sentence": "a"}}, "sentences"),
    ("encoder", "/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": 3}},
     "truncate"),
])  # fmt: skip
def test_a_failure_is_a_text_and_its_kind(servers, kind, path, body, said):
    status, answer = post(servers(kind)[0], body, path)
    assert (status, answer["error_type"]) == (400, "Validation")
    assert said in answer["error"]


@pytest.mark.parametrize(("kind", "path", "body", "param"), [
    ("encoder", "/rerank", {"query": "a", "texts": ["b"]}, "model"),
    ("ranker", "/rerank", {"query": "a", "texts": []}, "texts"),
    ("ranker", "/v1/rerank", {"query": "a", "documents": ["b"], "prompt_name": "x"}, "prompt_name"),
    ("ranker", "/v1/rerank", {"query": "a", "documents": ["b"], "top_k": 3}, "top_k"),
    ("classifier", "/", {"inputs": 5, "parameters": {}}, "inputs"),
    ("ranker", "/v1/score", {"text_1": "a"}, "text_1"), ("ranker", "/v1/score", {}, "text_1"),
    ("ranker", "/v1/score", {"text_1": "a", "documents": "b"}, "documents"),
    ("ranker", "/v1/score", {"text_1": ["a", "b"], "text_2": ["c"]}, "text_1"),
])  # fmt: skip
def test_other_failures_name_their_field(servers, kind, path, body, param):
    status, answer = post(servers(kind)[0], body, path)
    assert (status, answer["error"]["param"]) == (400, param)


def test_text_is_not_written_where_vectors_are_made(tmp_path):
    with running(saved(tmp_path / "model", "llama"), dtype="float32") as server:
        status, answer = post(server, {"inputs": "a", "parameters": {"max_new_tokens": 5}}, "/")
        assert (status, "/v1/completions" in answer["error"]["message"]) == (400, True)


def test_what_the_model_is_and_where_else_to_ask(servers):
    for kind, name in (("encoder", "embedding"), ("classifier", "classifier"), ("ranker", "reranker")):
        server, lm = servers(kind)
        with Wire(int(server.url.rsplit(":", 1)[1])) as wire:
            said = wire.ask("GET", "/info").json
            assert (said["model_id"], said["max_input_length"], list(said["model_type"])) == ("toy", lm.context, [name])
            for path, other in (
                ("/generate", "POST /v1/completions"), ("/embed_sparse", "POST /embed"), ("/models", "/v1/models"),
                ("/v1/fim/completions", "/v1/completions"),
                ("/v2/v1/chat/completions", "/v1/chat/completions"), ("/v1/completions/", "/v1/completions"),
            ):  # fmt: skip
                reply = wire.ask("POST", path, {})
                assert (reply.status, other in json.loads(reply.body)["error"]["message"]) == (404, True)
