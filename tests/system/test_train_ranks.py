"""One process and two processes learn the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch.testing import assert_close

import training_toy
from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from orrery.laws.ranks import free_port
from programs import ORRERY
from tiny_models import saved

TOY = [sys.executable, str(Path(training_toy.__file__))]


def train(folder: Path, world: int, steps: int) -> None:
    started([*TOY, str(folder), "--dropout", "0", "--steps", str(steps), "--ranks"], world)


def started(words: list[str], world: int) -> list[str]:
    """Start a command as ``torchrun`` does, and return what each process said."""
    port = free_port()
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # Processes of their own, as in test_sharding.
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    ranks = [
        subprocess.Popen(words, env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, **how)
        for rank in range(world)
    ]
    said = [process.communicate()[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0] * world, said
    return said


@pytest.mark.slow
def test_one_process_equals_two(tmp_path: Path) -> None:
    train(tmp_path / "one", 1, steps=12)
    train(tmp_path / "two", 2, steps=12)
    losses, weights = [], []
    for name in ("one", "two"):
        folder = tmp_path / name
        records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        losses.append([(record["train/loss"], record.get("val/loss", 0.0)) for record in records])
        weights.append(read_checkpoint(CheckpointStore(folder / "checkpoints").path(12)).model)
    assert_close(losses[1], losses[0], rtol=1e-6, atol=0)
    assert_close(weights[1], weights[0], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_two_processes_fine_tune_two_seeds_and_the_first_scores_them(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"{'the cat' if n % 2 else 'a dog'} {n},{n % 2}\n" for n in range(40)))
    base = saved(tmp_path / "base", "bert")
    words = ["finetune", "classification", "--from", str(base), "--train", str(rows), "--output", str(folder)]
    said = started([*ORRERY, *words, "--seeds", "2", "--training.steps", "2", "--training.device", "cpu"], 2)
    assert said[0].count("scored in") == 2
    assert "accuracy of 2 seeds: mean" in said[0]
    assert said[1] == ""
    assert len([*folder.glob("seed-*/scores.json")]) == len([*folder.glob("seed-*/report.html")]) == 2
