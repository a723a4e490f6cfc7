"""One process and two processes learn the same."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from torch.testing import assert_close

import training_toy
from orrery.checkpoints.store import CheckpointStore, read_checkpoint

TOY = [sys.executable, str(Path(training_toy.__file__))]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def train(folder: Path, world: int, steps: int) -> None:
    port, words = free_port(), [*TOY, str(folder), "--dropout", "0", "--steps", str(steps), "--ranks"]
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # Processes of their own, as in test_sharding.
    ranks = [subprocess.Popen(words, env={**os.environ, **common, "RANK": str(rank)}) for rank in range(world)]
    assert [process.wait() for process in ranks] == [0] * world


@pytest.mark.slow
@pytest.mark.alone
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
