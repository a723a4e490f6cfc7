"""A mixer that is one file (``tests/mixer_toy.py``) keeps every law, learns, is saved, read, seen and writes."""

import pytest
import torch

import orrery
from orrery.families import _registry
from orrery.laws import registry
from orrery.recipes.read import load_recipe

MAPPED = {"decaying": "mixer_toy"}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(_registry, "_registered", {**_registry._registered, **MAPPED})


def test_it_keeps_every_law():
    report = registry.verify("decaying")
    assert {evidence.law for evidence in report.checks} >= {
        "recurrence",
        "cache",
        "packing",
        "resume",
        "checkpoint",
        "sight",
    }
    assert [evidence for evidence in report.checks if not evidence.passed] == []


def test_it_learns_and_everything_else_works_on_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.txt").write_text("abcabdcab xyzzyx " * 400)
    run = orrery.train(
        {
            "name": "made-up",
            "model": {
                "family": "decaying",
                "config": {"hidden_size": 24, "num_layers": 1, "max_position_embeddings": 64},
            },
            "tokenizer": {"kind": "character"},
            "data": {"train": str(tmp_path / "letters.txt"), "split": {"tail": 0.1}},
            "batches": {"kind": "crops", "length": 32, "size": 8},
            "training": {"steps": 200, "optimizer": {"kind": "adamw", "rate": 0.01}, "precision": "float32"},
            "evaluation": {"every": 200},
            "checkpoints": {"every": 200, "keep": 1},
            "logging": {"every": 100},
        },
        quiet=True,
    )
    losses = [record["val/loss"] for record in run.records() if "val/loss" in record]
    assert losses[-1] < 0.9  # 2.1 nats without any context
    assert load_recipe(run.folder / "config.yaml").model.family == "decaying"
    lm = orrery.load(run.folder)
    written = lm.generate("abcab", max_new_tokens=9, temperature=0)
    assert len(written) == 9
    full = lm.tokenizer.encode("abcab")
    for _ in range(9):
        full = [*full, int(lm.logits(torch.tensor([full]))[0, -1].argmax())]
    assert lm.tokenizer.decode(full[5:]) == written
    seen = lm.trace("abcabd")
    assert seen["blocks.0.recurrence.strength"].shape == (1, 6, 24)
    assert all(check.passed for check in seen.checks)
