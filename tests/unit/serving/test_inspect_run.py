import gc
import http.client
import json
import os
import shutil
import time
import weakref

import pytest
import torch
from safetensors.torch import load as decoded

import orrery.serving.routes.train as route
from demo_toy import write_ring
from live_run import RECIPE
from orrery.language_model.load import load
from orrery.page.passes import Passes
from orrery.serving.background import serving
from serving_toy import chat_model, post, running

TEXT = "The ring: abc"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three checkpoints."""
    from orrery.cli.program import run as program

    folder = tmp_path_factory.mktemp("run")
    write_ring(folder / "ring", documents=30)
    changes = {"training": {**RECIPE["training"], "steps": 12}, "checkpoints": {"every": 4, "keep": 9}}
    data = {"data": {**RECIPE["data"], "train": str(folder / "ring")}, "evaluation": {"every": 100}}
    (folder / "ring.yaml").write_text(json.dumps({**RECIPE, **changes, **data}))
    assert program(["train", str(folder / "ring.yaml"), "--output", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def toy(run):
    with serving(load(run, "cpu", "float32", say=lambda line: None), "toy", grace=5) as server:
        yield server


def get(toy, path):
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    answered = response.status, response.read()
    connection.close()
    return answered


def following(toy):
    """Return a connection that follows the run, and its response."""
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/inspect/train/events")
    return connection, connection.getresponse()


def event(response):
    while not (line := response.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return json.loads(line[6:])


def eventually(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_is_followed_from_its_history_on(toy, run):
    connection, response = following(toy)
    assert response.headers["content-type"].startswith("text/event-stream")
    history = event(response)["history"]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert history["curves"]["train/loss"] == [[line["step"], line["train/loss"]] for line in lines]
    assert [one["step"] for one in history["checkpoints"]] == [4, 8, 12]
    before = (run / "metrics.jsonl").read_bytes()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "lr": 0.5}\n')
    assert event(response) == {"record": {"step": 13, "lr": 0.5}}
    (run / "metrics.jsonl").write_bytes(before)  # shorter than it was: the run began again from here
    assert "history" in event(response)
    assert toy.served.followers == 1
    response.close()
    connection.close()
    eventually(lambda: toy.served.followers == 0)


def test_so_many_may_follow_and_no_more(toy, monkeypatch):
    monkeypatch.setattr(route, "READERS", 1)
    connection, response = following(toy)
    event(response)
    assert get(toy, "/inspect/train/events")[0] == 429
    response.close()
    connection.close()
    eventually(lambda: toy.served.followers == 0)


def test_a_model_without_a_run_has_none_to_follow(tmp_path):
    with running(chat_model(tmp_path / "model"), "float32") as alone:
        for path in ("/inspect/train/events", "/inspect/checkpoints"):
            status, body = get(alone, path)
            assert (status, json.loads(body)["error"]["code"]) == (404, "no_run")
        status, body = post(alone, {"text": "the cat", "checkpoint": 4}, "/inspect/traces")
        assert status == 400
        assert "no run" in body["error"]["message"]


def test_a_pass_is_opened_at_a_checkpoint(toy, run):
    listed = json.loads(get(toy, "/inspect/checkpoints")[1])
    assert [one["step"] for one in listed["checkpoints"]] == [4, 8, 12]
    assert (listed["run"], listed["served"]) == ("run", "final")
    seen = {}
    for step in (4, 8, None):
        asked = {"text": TEXT} if step is None else {"text": TEXT, "checkpoint": step}
        status, opened = post(toy, asked, "/inspect/traces")
        assert status == 200
        content = get(toy, f"/inspect/traces/{opened['id']}/attention?layer=1&site=0")[1]
        folder = run / "final" if step is None else run / "checkpoints" / f"step-{step:06d}"
        lm = load(folder, "cpu", "float32", say=lambda line: None)
        wanted = lm.trace(TEXT)["blocks.1.attention.pattern"][0].half()
        seen[step] = decoded(content)["pattern"]
        assert torch.equal(seen[step], wanted)
    assert not torch.equal(seen[4], seen[8])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": TEXT, "checkpoint": 5}, "no checkpoint of step 5"),
        ({"text": TEXT, "checkpoint": -1}, "greater than or equal to 0"),
        ({"response": "chatcmpl-1", "checkpoint": 4}, "by no checkpoint"),
    ],
)
def test_what_cannot_be_opened_is_refused(toy, asked, said):
    status, body = post(toy, asked, "/inspect/traces")
    assert status == 400
    assert said in body["error"]["message"]


def test_two_models_of_checkpoints_are_in_memory_and_their_passes_go_with_them(run):
    passes = Passes(load(run, "cpu", "float32", say=lambda line: None))
    first = passes.open({"text": TEXT}, checkpoint=4)
    model, id = weakref.ref(first.lm.model), first.id
    del first
    assert passes.open({"text": TEXT}, checkpoint=4).id == id
    passes.open({"text": TEXT}, checkpoint=8)
    assert model() is not None
    own = passes.open({"text": TEXT})
    passes.open({"text": TEXT}, checkpoint=12)
    gc.collect()
    assert model() is None, "the model of the first checkpoint is still held"
    assert [step for step, _ in passes._models._held] == [8, 12]
    assert passes.show(own.id, "tokens", {}).facts["id"] == own.id
    assert passes.open({"text": TEXT}, checkpoint=4).id == id
    assert [step for step, _ in passes._models._held] == [12, 4]


def test_a_checkpoint_that_the_run_has_written_anew_is_read_anew(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    passes = Passes(load(copy, "cpu", "float32", say=lambda line: None))
    before = passes.open({"text": TEXT}, checkpoint=4)
    old, new = (copy / "checkpoints" / f"step-{step:06d}" for step in (4, 8))
    shutil.rmtree(old)
    shutil.copytree(new, old)
    os.utime(old / "manifest.json")
    after = passes.open({"text": TEXT}, checkpoint=4)
    assert after.id != before.id
    wanted = passes.open({"text": TEXT}, checkpoint=8)
    assert torch.equal(after.first.logits, wanted.first.logits)
    assert not torch.equal(before.first.logits, wanted.first.logits)


def test_the_laws_are_told_once_and_then_by_their_version(toy, run):
    told = json.loads(get(toy, "/inspect/laws")[1])
    assert (told["family"], told["running"], "cells" in told) == ("gpt2", None, False)
    check = {"name": "a", "law": "cache", "family": "gpt2", "passed": True, "value": 1e-7, "bound": 1e-5}
    (run / "laws.json").write_text(json.dumps({"checks": [check], "not_run": []}))
    told = json.loads(get(toy, "/inspect/laws")[1])
    assert (told["source"], told["cells"][0]["state"]) == ("laws.json", "holds")
    version = told["version"].replace(" ", "%20")
    assert "cells" not in json.loads(get(toy, f"/inspect/laws?version={version}")[1])
    assert "laws" in {view["kind"] for view in json.loads(get(toy, "/inspect/session")[1])["views"]}
    (run / "laws.json").unlink()
    assert post(toy, {"of": "nothing"}, "/inspect/laws")[0] == 200
    assert post(toy, {"of": "all"}, "/inspect/laws")[0] == 400
