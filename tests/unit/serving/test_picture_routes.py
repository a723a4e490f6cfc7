"""Pictures over HTTP: a captioner answers chats, responses and Ollama's clients with what it writes of a picture."""

import base64
import gc
import io
import json
import re

import pytest
import torch

from orrery.data.pictures.addresses import BEGINNING as DATA
from orrery.data.pictures.png import write_png
from orrery.language_model.load import load
from serving_toy import chat_model, events, post, running
from tiny_models import saved

PIXELS = torch.randint(0, 256, (3, 20, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(4))
CONTENT = base64.b64encode(write_png(PIXELS)).decode()
OTHER = base64.b64encode(write_png(PIXELS // 255)).decode()
ADDRESS = DATA + CONTENT
HOW = {"temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("captions") / "m", "vision-encoder-decoder")


@pytest.fixture(scope="module")
def toy(folder):
    with running(folder) as found:
        yield found


@pytest.fixture(scope="module")
def expected(folder):
    lm = load(folder, "cpu", "float64", say=str)
    found = [lm.generate(DATA + one, max_new_tokens=6, temperature=0) for one in (CONTENT, OTHER)]
    assert found[0] != found[1]
    return found


def said(*addresses, text=None):
    parts = [{"type": "image_url", "image_url": {"url": one, "detail": "auto"}} for one in addresses]
    return [{"role": "user", "content": [*([{"type": "text", "text": text}] if text is not None else []), *parts]}]


def test_a_chat_is_answered_with_the_caption(toy, expected):
    for content, text in zip((CONTENT, OTHER), expected, strict=True):
        status, found = post(toy, {"messages": said(DATA + content, text=" "), **HOW}, "/v1/chat/completions")
        assert status == 200, found
        assert found["choices"][0]["message"]["content"] == text
        assert found["usage"]["prompt_tokens"] == 10  # nine patches and the class token
    body = {"messages": said(ADDRESS), "n": 2, "logprobs": True, **HOW}
    status, found = post(toy, body, "/v1/chat/completions")
    assert [one["message"]["content"] for one in found["choices"]] == [expected[0]] * 2
    status, text = post(toy, {**body, "stream": True, "n": 1, "logprobs": False}, "/v1/chat/completions")
    assert status == 200
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events(text)[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == expected[0]


def test_a_response_is_the_caption(toy, expected):
    content = [{"type": "input_image", "image_url": ADDRESS, "detail": "low"}]
    body = {"input": [{"role": "user", "content": content}], "temperature": 0, "max_output_tokens": 6}
    status, found = post(toy, body, "/v1/responses")
    assert status == 200, found
    assert found["output"][0]["content"][0]["text"] == expected[0]
    assert found["usage"]["input_tokens"] == 10
    status, again = post(toy, {**body, "previous_response_id": found["id"]}, "/v1/responses")
    assert status == 400
    assert "no text" in again["error"]["message"]
    for part in ({"file_id": "f"}, {"image_url": "https://example.org/a.png"}):
        asked = {**body, "input": [{"role": "user", "content": [{"type": "input_image", **part}]}]}
        assert post(toy, asked, "/v1/responses")[0] == 400


def test_ollamas_clients_are_answered(toy, expected):
    options = {"options": {"temperature": 0, "num_predict": 6}, "stream": False}
    message = {"role": "user", "content": "", "images": [CONTENT]}
    status, found = post(toy, {"messages": [message], **options}, "/api/chat")
    assert status == 200, found
    assert found["message"]["content"] == expected[0]
    assert found["prompt_eval_count"] == 10
    status, found = post(toy, {"prompt": "", "images": [OTHER], **options}, "/api/generate")
    assert status == 200, found
    assert found["response"] == expected[1]
    assert "context" not in found
    status, shown = post(toy, {"model": "toy"}, "/api/show")
    assert status == 200, shown
    assert "vision" in shown["capabilities"]
    for wrong in (["https://example.org/a.png"], [3], ["!"]):
        assert post(toy, {"messages": [{**message, "images": wrong}], **options}, "/api/chat")[0] == 400
    status, found = post(toy, {"prompt": "", "images": [CONTENT], "raw": True, **options}, "/api/generate")
    assert (status, "raw" in found["error"]) == (400, True)


def test_tasks_are_answered(toy, expected):
    status, found = post(toy, {"input": [ADDRESS, DATA + OTHER], "max_new_tokens": 6}, "/v1/tasks/image-to-text")
    assert status == 200, found
    assert [one["caption"] for one in found["data"]] == expected
    status, found = post(toy, {"input": ADDRESS}, "/v1/tasks/image-feature-extraction")
    assert len(found["data"][0]["features"][0]) == 10
    assert post(toy, {"input": "/etc/passwd"}, "/v1/tasks/image-to-text")[0] == 400


def bomb():
    image = pytest.importorskip("PIL.Image").new("L", (5_000, 5_000))
    out = io.BytesIO()
    image.save(out, "PNG")
    return DATA + base64.b64encode(out.getvalue()).decode()


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (lambda: said("https://example.org/a.png"), "fetches no address"),
        (lambda: said("file:///etc/passwd"), "fetches no address"),
        (lambda: said(ADDRESS, DATA + OTHER), "reads one picture, and the messages hold 2"),
        (lambda: said(), "hold none"),
        (lambda: said(ADDRESS, text="What is this?"), "one picture and no text"),
        (lambda: [{"role": "system", "content": "Be short."}, *said(ADDRESS)], "one picture and no text"),
        (lambda: said(DATA + "!"), "no base64"),
        (lambda: said("data:text/plain,hello"), "no picture in base64"),
        (lambda: said(DATA + CONTENT[:200]), "broken|ends too early"),
        (lambda: said(DATA + base64.b64encode(b"GIF89a and no more").decode()), "broken|no PNG"),
        (lambda: said(bomb()), "a client may send 16,777,216 pixels"),
        (lambda: [{"role": "user", "content": [{"type": "image_url"}]}], "image_url"),
        (lambda: [{"role": "user", "content": [{"type": "input_audio"}]}], "unsupported|reads parts of type"),
    ],
)
def test_what_cannot_be_seen_is_refused(toy, messages, says):
    status, found = post(toy, {"messages": messages(), **HOW}, "/v1/chat/completions")
    assert status == 400, found
    assert re.search(says, found["error"]["message"]), found
    assert found["error"]["param"].startswith("messages")


def test_what_a_captioner_does_not_do_is_refused(toy):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    for more in ({"tools": [tool]}, {"reasoning_effort": "low"}, {"prefix_ids": [3]}):
        status, found = post(toy, {"messages": said(ADDRESS), **HOW, **more}, "/v1/chat/completions")
        assert status == 400, (more, found)
    assert post(toy, {"prompt": "hello"}, "/v1/completions")[0] == 400
    assert post(toy, {"messages": [{"role": "user", "content": "hi"}]}, "/tokenize")[0] == 400
    assert post(toy, {"input": "hello"}, "/v1/responses/input_tokens")[0] == 400
    assert post(toy, {"input": "hello"}, "/v1/embeddings")[0] == 400


def test_no_picture_is_kept_once_its_answer_has_ended(toy):
    for _ in range(3):
        assert post(toy, {"messages": said(ADDRESS), **HOW}, "/v1/chat/completions")[0] == 200
    gc.collect()
    assert len(toy.served.pictures) <= 1


def test_an_answer_is_looked_into_with_its_picture(toy):
    status, found = post(toy, {"messages": said(ADDRESS), **HOW}, "/v1/chat/completions")
    status, opened = post(toy, {"response": found["id"]}, "/inspect/traces")
    assert status == 200, opened
    assert opened["id"]


def test_a_model_of_texts_refuses_pictures(tmp_path):
    with running(chat_model(tmp_path)) as toy:
        status, found = post(toy, {"messages": said(ADDRESS, text="What?"), **HOW}, "/v1/chat/completions")
        assert (status, found["error"]["code"]) == (400, "unsupported_content")
        assert "sees no picture" in found["error"]["message"]
        asked = {"prompt": "What?", "images": [CONTENT], "stream": False}
        status, found = post(toy, asked, "/api/generate")
        assert (status, "sees no picture" in found["error"]) == (400, True)
