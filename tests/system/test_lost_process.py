"""A process of several is killed or stops: the others end, and ``torchrun --max-restarts`` goes on to equal bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orrery.checkpoints.manifest import file_sha256
from orrery.errors import MachineError
from orrery.laws.ranks import free_port
from programs import ORRERY

STEPS = 40
RECIPE = """
name: lost
model: {family: llama, config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2, num_attention_heads: 2}}
tokenizer: {kind: character}
data: {train: text.txt}
batches: {length: 16, size: 4}
training: {steps: 40, device: cpu, precision: float32, optimizer: {rate: 0.01}}
checkpoints: {every: 5, keep: 9}
"""


def started(folder: Path, output: str) -> subprocess.Popen[str]:
    """Start two processes as the guide says, on any free port."""
    group = ["--nproc-per-node", "2", "--max-restarts", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    words = ["-m", "orrery", "train", "recipe.yaml", "--resume", "--output", output, "--parallel.fsdp", "2"]
    command = [sys.executable, "-m", "torch.distributed.run", *group, *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=folder, text=True, **streams)


def process(launcher: int, rank: int) -> int:
    """Return the number of the process of a rank."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            of = (place / "stat").read_text().rpartition(")")[2].split()[1]
            words = (place / "environ").read_bytes().split(b"\0") if int(of) == launcher else ()
        except OSError:  # gone meanwhile
            continue
        if f"RANK={rank}".encode() in words:
            return int(place.name)
    raise AssertionError("there is no such process")


def left(folder: Path) -> dict[str, str]:
    """Return the digests of the last checkpoint."""
    last = folder / "checkpoints" / f"step-{STEPS:06d}"
    return {path.name: file_sha256(path) for path in last.glob("*.safetensors")}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_process_ends_that_has_lost_another_one(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 200)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    port = free_port()
    words = [*ORRERY, "train", "recipe.yaml", "--output", "cut", "--parallel.fsdp", "2"]
    # A lost one is noticed by its connection, long before the timeout; one that stands by the timeout alone.
    timeout, bound = (60, 20) if how is signal.SIGKILL else (8, 30)
    words += ["--training.steps", "100000", "--parallel.timeout", str(timeout)]
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    first, second = (
        subprocess.Popen(words, env={**common, "RANK": rank, "LOCAL_RANK": rank}, **streams) for rank in "01"
    )
    end = time.monotonic() + 100
    while not (tmp_path / "cut" / "checkpoints" / "step-000010").exists():
        assert time.monotonic() < end
        assert first.poll() is None
        time.sleep(0.005)
    second.send_signal(how)
    began = time.monotonic()
    try:
        said = first.communicate(timeout=60)[1]
    finally:
        second.kill()
        second.communicate()
    assert time.monotonic() - began < bound
    assert first.returncode == MachineError.exit_code, said
    assert "process 0 of the run has lost another one" in said
    assert "--resume goes on from the last checkpoint" in said


def test_a_run_goes_on_after_a_process_was_killed(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 200)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    whole = started(tmp_path, "whole")
    said = whole.communicate(timeout=200)[0]
    assert whole.returncode == 0, said
    cut = started(tmp_path, "cut")
    end = time.monotonic() + 100
    while not (tmp_path / "cut" / "checkpoints" / "step-000010").exists():
        assert time.monotonic() < end
        assert cut.poll() is None
        time.sleep(0.005)
    os.kill(process(cut.pid, 1), signal.SIGKILL)
    said = cut.communicate(timeout=200)[0]
    assert cut.returncode == 0, said
    assert "resumed at step" in said
    assert len(left(tmp_path / "whole")) == 2
    assert left(tmp_path / "cut") == left(tmp_path / "whole")
