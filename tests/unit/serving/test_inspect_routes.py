import base64
import http.client
import json
import threading
import time
from fnmatch import fnmatchcase

import pytest
import torch
from safetensors.torch import load

from orrery.data.pictures.addresses import BEGINNING as DATA
from orrery.data.pictures.png import write_png
from orrery.errors import UsageError
from orrery.inspection.interventions import interventions
from orrery.serving.background import serving
from serving_toy import chat_model, post, running
from slow_requests import edits
from views_toy import PIXELS, language_model_of


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


def get(toy, path, **headers):
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    answered = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return answered


def checks_of(content):
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"]["view"])["checks"]


def test_the_page_and_its_files_are_served(toy):
    status, headers, page = get(toy, "/")
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["cache-control"] == "no-store"
    address = page.decode().split('href="/static/style.css')[1].split('"')[0]
    status, headers, _ = get(toy, f"/static/style.css{address}")
    assert (status, headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert get(toy, "/static/../served.py")[0] in (400, 404)
    assert get(toy, "/static/none.js")[0] == 404


def test_a_text_can_be_looked_into(toy):
    status, opened = post(toy, {"text": "the cat sat"}, "/inspect/traces")
    assert status == 200
    status, _, content = get(toy, f"/inspect/traces/{opened['id']}/attention?layer=1")
    assert status == 200
    wanted = toy.served.lm.trace("the cat sat")["blocks.1.attention.pattern"][0]
    assert torch.equal(load(content)["pattern"], wanted.half())
    assert post(toy, {"text": "the cat sat"}, "/inspect/traces")[1] == opened


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_served_answer_can_be_looked_into_by_its_id(toy, path, stream):
    chat = path.endswith("chat/completions")
    asked = {"messages": [{"role": "user", "content": "the cat"}], "top_logprobs": 1} if chat else {"prompt": "the cat"}
    body = {**asked, "max_tokens": 6, "temperature": 1, "seed": 5, "logprobs": True if chat else 1, "stream": stream}
    status, answer = post(toy, body, path)
    assert status == 200
    id = json.loads(answer.split("data: ")[1])["id"] if stream else answer["id"]
    status, opened = post(toy, {"response": id}, "/inspect/traces")
    assert status == 200, opened
    replayed = checks_of(get(toy, f"/inspect/traces/{opened['id']}/tokens")[2])[-1]
    assert replayed["name"] == "replayed log probabilities are those that were served"
    assert replayed["passed"], replayed


def test_the_check_of_a_replay_sees_other_numbers(toy):
    from orrery.page.replay import replay_check

    passes = toy.served.passes
    inside = passes.open({"text": "the cat sat"})
    written = inside.first.ids[0, -2:].tolist()
    logits = inside.first.logits[0, -3:-1].double().log_softmax(-1)
    served = [float(logits[n, token]) for n, token in enumerate(written)]
    assert replay_check(inside, written, served).passed
    assert not replay_check(inside, written, [served[0], served[1] + 1e-3]).passed
    assert not replay_check(inside, written[::-1], served).passed


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "give one of"),
        ({"text": "a", "source": "b"}, "give one of"),
        ({"text": "a", "target": "b"}, "target belongs to source"),
        ({"text": ""}, ""),
        ({"text": 5}, "valid string"),
        ({"txt": "a"}, "txt"),
        ({"response": "cmpl-none"}, "not remembered"),
        ({"text": "the " * 4000}, "context"),
    ],
)
def test_what_cannot_be_looked_into_is_refused(toy, body, said):
    status, answer = post(toy, body, "/inspect/traces")
    if not body.get("text", "x"):
        assert status in (200, 400)  # an empty text is the beginning of one where the tokenizer has a start
        return
    assert status in (400, 404)
    assert said in answer["error"]["message"]


def test_a_pass_can_take_from_another_one(toy):
    """What interventions write as JSON is what the route reads: a patch, and steering by another pass."""
    other = post(toy, {"text": "a dog ran"}, "/inspect/traces")[1]["id"]
    stream, lm = "blocks.0.resid_post", toy.served.lm
    edits = [
        {"at": stream, "op": "patch", "position": 2, "from": other, "from_position": 1},
        {"at": "blocks.1.resid_pre", "op": "add", "from": other, "from_position": 2, "scale": 1.5},
    ]
    status, opened = post(toy, {"text": "the cat sat", "edits": edits}, "/inspect/traces")
    assert status == 200, opened
    content = get(toy, f"/inspect/traces/{opened['id']}/attention?layer=1")[2]
    clean, taken = lm.trace("the cat sat"), lm.trace("a dog ran")
    edited = clean.edit(edits, {other: taken}).run()
    assert edited.interventions.plain() == edits
    assert torch.equal(load(content)["pattern"], edited["blocks.1.attention.pattern"][0].half())
    assert not torch.equal(edited["blocks.1.attention.pattern"], clean["blocks.1.attention.pattern"])
    for wrong, said in (({"from": "0123"}, "is not open"), ({"source": other}, "no field 'source'")):
        status, answer = post(
            toy, {"text": "the cat", "edits": [{"at": stream, "op": "patch", **wrong}]}, "/inspect/traces"
        )
        assert status == 400
        assert said in answer["error"]["message"]


def test_what_a_pass_needs_is_said_before_it_runs(toy, monkeypatch):
    status, answer = post(toy, {"text": "the cat sat"}, "/inspect/cost")
    assert status == 200
    id = post(toy, {"text": "the cat sat"}, "/inspect/traces")[1]["id"]
    assert answer["bytes"] == toy.served.passes._held[id].memory.total
    assert "MiB" in answer["said"]
    monkeypatch.setattr("orrery.page.views._inside.MOST", 1 << 20)
    for path in ("/inspect/cost", "/inspect/traces"):
        status, answer = post(toy, {"text": "the cat sat on the mat"}, path)
        assert status == 400
        assert "at most 1 MiB" in answer["error"]["message"]


def test_a_pass_that_is_not_open_and_a_view_that_is_none_are_refused(toy):
    status, _, content = get(toy, "/inspect/traces/0123/attention")
    assert status == 400
    assert "is not open" in json.loads(content)["error"]["message"]
    id = post(toy, {"text": "the cat"}, "/inspect/traces")[1]["id"]
    assert "no view called" in json.loads(get(toy, f"/inspect/traces/{id}/nothing")[2])["error"]["message"]
    assert "did you mean" in json.loads(get(toy, f"/inspect/traces/{id}/attention?layr=1")[2])["error"]["message"]


def test_few_passes_are_held(toy, monkeypatch):
    monkeypatch.setattr("orrery.page.passes.MOST", 2)
    ids = [post(toy, {"text": f"the cat {n}"}, "/inspect/traces")[1]["id"] for n in range(3)]
    assert get(toy, f"/inspect/traces/{ids[0]}/tokens")[0] == 400
    assert all(get(toy, f"/inspect/traces/{id}/tokens")[0] == 200 for id in ids[1:])


def test_inspection_can_be_switched_off(tmp_path):
    with running(chat_model(tmp_path / "model"), "float32", inspect=False) as server:
        for status, _, content in (get(server, "/"), get(server, "/inspect/session")):
            assert status == 403
            assert "--inspect" in json.loads(content)["error"]["message"]
        assert post(server, {"text": "a"}, "/inspect/traces")[0] == 403
        assert get(server, "/health")[0] == 200


def test_a_server_with_a_key_gives_the_page_and_nothing_of_the_model(tmp_path):
    with running(chat_model(tmp_path / "model"), "float32", api_key="a secret of ours") as server:
        assert get(server, "/")[0] == 200
        assert get(server, "/inspect/session")[0] == 401
        assert post(server, {"text": "a"}, "/inspect/traces")[0] == 401
        assert get(server, "/inspect/session", Authorization="Bearer a secret of ours")[0] == 200


def test_looking_keeps_no_other_request_waiting_and_its_queue_is_bounded(toy, monkeypatch):
    monkeypatch.setattr("orrery.serving.served.LOOKING", 2)
    blocked, release = threading.Event(), threading.Event()

    def slow(*_):
        blocked.set()
        release.wait(30)
        raise UsageError("enough", "")

    monkeypatch.setattr(toy.served.passes, "show_model", slow)
    statuses = []
    looks = [
        threading.Thread(target=lambda: statuses.append(get(toy, "/inspect/model/parameters")[0])) for _ in range(2)
    ]
    looks[0].start()
    assert blocked.wait(30)
    looks[1].start()
    assert post(toy, {"prompt": "the cat", "max_tokens": 2}, "/v1/completions")[0] == 200
    while toy.served._looking < 2:
        time.sleep(0.01)
    status, headers, _ = get(toy, "/inspect/model/parameters")
    assert (status, headers["retry-after"]) == (429, "1")
    release.set()
    for look in looks:
        look.join(30)
    assert statuses == [400, 400]


def test_an_image_can_be_looked_into_by_its_content_or_by_the_name_that_it_was_given(tmp_path):
    content, file = write_png(PIXELS.permute(2, 0, 1)), tmp_path / "cat.png"
    file.write_bytes(content)
    with serving(language_model_of("vit"), "toy") as toy:
        sent = DATA + base64.b64encode(content).decode()
        status, opened = post(toy, {"image": sent}, "/inspect/traces")
        assert status == 200
        pattern = load(get(toy, f"/inspect/traces/{opened['id']}/attention?layer=1")[2])["pattern"]
        assert torch.equal(pattern, toy.served.lm.trace(PIXELS)["blocks.1.attention.pattern"][0].half())
        # No path of the server's machine is read for a client.
        for path in (str(file), "cat.png"):
            status, refused = post(toy, {"image": path}, "/inspect/traces")
            assert status == 400
            assert "there is no image" in refused["error"]["message"]
        assert toy.served.passes.keep_image(file) == "cat.png"
        assert post(toy, {"image": "cat.png"}, "/inspect/traces") == (200, opened)
        assert post(toy, {"image": sent, "text": "the cat"}, "/inspect/traces")[0] == 400
        assert post(toy, {"text": "the cat"}, "/inspect/traces")[0] == 400
        assert json.loads(get(toy, "/inspect/session")[2])["reads_image"] is True


@pytest.mark.parametrize("number", range(len(list(edits()))))
def test_edits_that_are_made_to_be_slow_are_refused_at_once(toy, number):
    """What may be named is bounded before anything is looked for: a place of 100,000 stars took minutes."""
    began = time.monotonic()
    status, said = post(toy, {"text": "the cat sat", "edits": list(edits())[number]}, "/inspect/traces")
    assert status == 400
    assert time.monotonic() - began < 5
    assert "at most" in said["error"]["message"]


def test_as_many_edits_as_may_be_look_for_each_key_once(toy, monkeypatch):
    """The passes over patterns and tensors grow with their product, and not with its square."""
    asked = []
    monkeypatch.setattr(interventions, "fnmatchcase", lambda key, at: asked.append((key, at)) or fnmatchcase(key, at))
    changes = [{"at": f"*{'*' * (n % 7)}.mixed", "op": "scale", "scale": 1.0 + n} for n in range(64)]
    assert post(toy, {"text": "the cat sat", "edits": changes}, "/inspect/traces")[0] == 200
    assert asked
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("given", [{"image": DATA + "AAAA"}, {"image": DATA}, {"image": DATA + "AAAA", "target": "a"}])
@pytest.mark.parametrize("path", ["traces", "cost"])
def test_a_model_of_text_reads_no_image(toy, given, path):
    """Its content would be read as a text of many letters."""
    status, said = post(toy, given, f"/inspect/{path}")
    assert status == 400
    wanted = "this model reads text and no images" if path == "traces" else "this is known of a text alone"
    assert wanted in said["error"]["message"]
