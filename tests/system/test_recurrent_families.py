"""Families of a constant memory go through the verbs of every model: train, resume, score, generate, see, save."""

import json
from pathlib import Path

import pytest
import torch
import yaml

from orrery.cli.program import run
from orrery.language_model.load import load

FAMILIES = {
    "nplm": {"hidden_size": 24, "order": 4},
    "elman_rnn": {"hidden_size": 24, "num_layers": 1},
    "lstm": {"hidden_size": 24, "num_layers": 2},
    "gru": {"hidden_size": 24, "num_layers": 1},
}
TEXT = "the list is sorted; the queue is not. " * 60


@pytest.fixture(params=FAMILIES)
def family(request, tmp_path, monkeypatch):
    """A recipe with dropout and windows that cut the text, and the folder where its run goes."""
    recipe = {
        "name": request.param,
        "model": {
            "family": request.param,
            "config": {**FAMILIES[request.param], "max_position_embeddings": 64},
            "dropout": 0.1,
        },
        "tokenizer": {"kind": "character"},
        "data": {"train": "text.txt", "split": {"tail": 0.1}},
        "batches": {"length": 24, "size": 4},
        "training": {"steps": 60, "optimizer": {"rate": 0.02}, "precision": "float32"},
        "evaluation": {"every": 20},
        "checkpoints": {"every": 20},
    }
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORRERY_RUNS", "runs")
    return request.param


def records(name):
    return [json.loads(line) for line in Path("runs", name, "metrics.jsonl").read_text().splitlines()]


def test_learns_and_then_scores_writes_and_shows_itself(family, capsys):
    assert run(["train", "recipe.yaml"]) == 0
    bits = [record["val/bpb"] for record in records(family) if "val/bpb" in record]
    assert bits[-1] < bits[0] < 5
    capsys.readouterr()

    assert run(["score", f"runs/{family}", "the list is sorted"]) == 0
    lines = capsys.readouterr().out.splitlines()
    lm = load(f"runs/{family}", "cpu", "float32", say=lambda line: None)
    ids = torch.tensor([[lm.tokenizer.special("end"), *lm.tokenizer.encode("the list is sorted")]])
    with torch.no_grad():
        nats = lm.model.logits(ids)[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None]).sum()
    assert abs(float(lines[-1].split()[1]) - nats) < 1e-3

    assert run(["generate", f"runs/{family}", "the list", "--max-new-tokens", "12", "--temperature", "0"]) == 0
    written = capsys.readouterr().out.rstrip("\n")
    assert written == lm.generate("the list", max_new_tokens=12, temperature=0.0).rstrip("\n")
    assert run(["generate", f"runs/{family}", "the list", "--max-new-tokens", "8", "--num-beams", "2"]) == 0

    seen = lm.trace("the list is sorted")
    assert all(check.passed for check in seen.checks)
    assert run(["show", f"runs/{family}"]) == 0

    lm.save(Path("again"))
    again = load("again", "cpu", "float32", say=lambda line: None)
    assert torch.equal(again.logits(ids), lm.logits(ids))


def test_stopped_and_resumed_ends_with_the_same_bytes(family):
    # A constant rate: a longer run is then the continuation of a shorter one.
    words = ["train", "recipe.yaml", "--training.schedule", "{kind: constant}"]
    assert run([*words, "--output", "whole"]) == 0
    assert run([*words, "--output", "cut", "--training.steps", "40"]) == 0
    assert run([*words, "--output", "cut", "--resume"]) == 0
    whole, cut = (Path(folder, "final", "model.safetensors").read_bytes() for folder in ("whole", "cut"))
    assert whole == cut
