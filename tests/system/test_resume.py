"""A run that is killed again and again ends with the bytes of one that never was."""

import json
import os
import random
import sys
import time
from pathlib import Path

import pytest
import torch

import training_toy
from orrery.checkpoints.store import CheckpointStore
from programs import PIPE, Program

TOY = str(Path(training_toy.__file__))
TIMED = ("tokens_per_second", "memory")
STEPS = 24


def child(folder: Path, *words: str) -> Program:
    return Program([sys.executable, TOY, folder, *words], stdout=PIPE, text=True)


def results(folder: Path) -> tuple[bytes, bytes, list[dict]]:
    path = CheckpointStore(folder / "checkpoints").path(STEPS)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    learned = [{key: value for key, value in record.items() if key not in TIMED} for record in records]
    return (path / "model.safetensors").read_bytes(), (path / "optimizer.safetensors").read_bytes(), learned


def kill_until_finished(folder: Path, kills: int, seed: int) -> int:
    """Kill children at random moments, every second one aimed inside a save; return how many hit one."""
    rng, inside = random.Random(seed), 0
    words = ("--steps", str(STEPS), "--pause", "0.01", "--width", "256")
    for number in range(kills):
        with child(folder, *words) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            if number % 2:
                deadline = time.monotonic() + 20
                while not list((folder / "checkpoints").glob("*.tmp-*")) and time.monotonic() < deadline:
                    if process.poll() is not None:
                        break
            else:
                time.sleep(rng.uniform(0, 0.25))
            process.kill()
        inside += bool(list((folder / "checkpoints").glob("*.tmp-*")))
    with child(folder, *words) as process:
        assert process.wait() == 0
    return inside


@pytest.mark.parametrize("kills", [pytest.param(3), pytest.param(10, marks=pytest.mark.slow)])
def test_killed_and_resumed_equals_uninterrupted(kills: int, tmp_path: Path) -> None:
    kills = int(os.environ.get("ORRERY_TEST_KILLS", kills))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the children
    recipe = training_toy.toy_recipe(training__steps=STEPS)
    training_toy.toy_run(tmp_path / "whole", recipe, training_toy.toy_parts(training_toy.toy_model(width=256)))
    torch.set_num_threads(threads)
    inside = kill_until_finished(tmp_path / "killed", kills, seed=kills)
    assert inside >= kills // 4
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
    assert [record["step"] for record in results(tmp_path / "killed")[2]] == [1, *range(2, STEPS + 1, 2)]
    assert not list((tmp_path / "killed" / "checkpoints").glob("*.tmp-*"))
