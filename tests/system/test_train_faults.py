"""Faults of a machine while the toy trains in a child process: the exit code, the message, nothing lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import programs
import training_toy
from full_disk import can_mount
from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from programs import PIPE, Program

TOY = [sys.executable, str(Path(training_toy.__file__))]


def shell(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run the toy inside a shell script that calls ``"$@"``, with the folder as ``$FOLDER``."""
    command = ["bash", "-c", script, "bash", *TOY, str(folder), *words]
    environment = {**os.environ, "FOLDER": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def toy(folder: Path, *words: str, **how: Any) -> subprocess.CompletedProcess:
    return programs.run([*TOY, folder, *words], capture_output=True, text=True, **how)


def newest(folder: Path) -> int:
    return read_checkpoint(CheckpointStore(folder).path(CheckpointStore(folder).steps()[0])).step


@pytest.mark.skipif(not can_mount(), reason="a full disk is a small one mounted here, which needs root")
def test_a_full_disk_keeps_the_old_checkpoint_and_says_how_much_is_missing(tmp_path: Path) -> None:
    # The mount goes with its shell, so a copy of what it held is made inside.
    (tmp_path / "run").mkdir()
    filler = 'mount -t tmpfs -o size=3m tmpfs "$FOLDER" && "$@" --steps 3'
    filler += ' && head -c 2500k /dev/zero > "$FOLDER/filler"'
    script = f'{filler}; "$@"; code=$?; cp -r "$FOLDER" "$FOLDER.copy"; exit $code'
    done = shell(f"unshare -m bash -c '{script}' bash \"$@\"", tmp_path / "run", "--width", "64")
    assert done.returncode == 5, done.stderr
    assert "bytes needed" in done.stderr
    assert "free" in done.stderr
    assert newest(tmp_path / "run.copy/checkpoints") == 3
    assert not list((tmp_path / "run.copy/checkpoints").glob("*.tmp-*"))


def test_a_limit_of_file_sizes_is_an_error_not_a_death(tmp_path: Path) -> None:
    assert toy(tmp_path, "--steps", "3", "--width", "64").returncode == 0
    done = toy(tmp_path, "--steps", "12", "--width", "64", room=32 << 10)
    assert done.returncode == 5, done.stderr
    assert "no room to write" in done.stderr
    assert newest(tmp_path / "checkpoints") == 3
    assert not list((tmp_path / "checkpoints").glob("*.tmp-*"))


@pytest.mark.skipif(not can_mount(), reason="a full disk is a small one mounted here, which needs root")
def test_a_read_only_folder_fails_before_the_first_step(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o ro tmpfs "$FOLDER"; "$@"'
    done = shell(f"unshare -m bash -c '{script}' bash \"$@\"", tmp_path)
    assert done.returncode == 5
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr


def start(folder: Path, *words: str) -> Program:
    process = Program([*TOY, folder, *words], stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)


def test_the_second_training_in_a_folder_is_told_of_the_first(tmp_path: Path) -> None:
    with start(tmp_path, "--steps", "500", "--pause", "0.05") as first:
        wait_for(tmp_path / "metrics.jsonl")
        second = toy(tmp_path)
        first.kill()
    assert second.returncode == 5
    assert f"in use by process {first.pid} on " in second.stderr


@pytest.mark.alone
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_after_the_step_and_exits_with_its_code(number: int, code: int, tmp_path: Path) -> None:
    with start(tmp_path, "--steps", "500", "--pause", "0.1") as process:
        wait_for(tmp_path / "metrics.jsonl")
        asked = time.monotonic()
        process.send_signal(number)
        assert process.wait() == code
        assert time.monotonic() - asked < 3
    told = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert newest(tmp_path / "checkpoints") == max(each["step"] for each in told)
    assert not (tmp_path / "final").exists()


@pytest.mark.alone
def test_a_second_interrupt_stops_at_once_without_damage(tmp_path: Path) -> None:
    with start(tmp_path, "--steps", "500", "--pause", "3") as process:
        wait_for(tmp_path / "run.json")
        time.sleep(0.5)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 130
        assert time.monotonic() - asked < 2.5
    assert toy(tmp_path, "--steps", "3").returncode == 0


@pytest.mark.alone
@pytest.mark.parametrize("place", ["save", "evaluation"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_inside_a_save_or_an_evaluation_loses_nothing(
    place: str, number: int, code: int, tmp_path: Path
) -> None:
    words = ("--steps", "40", "--width", "256", "--pause", "0.02")
    slow = ("--evaluation-pause", "0.4") if place == "evaluation" else ()
    inside = "evaluating" if place == "evaluation" else "checkpoints/*.tmp-*"
    with start(tmp_path / "stopped", *words, *slow) as process:
        deadline = time.monotonic() + 20
        while not list((tmp_path / "stopped").glob(inside)) and time.monotonic() < deadline:
            time.sleep(0.0002)
        process.send_signal(number)
        assert process.wait() == code
    assert not list((tmp_path / "stopped/checkpoints").glob("*.tmp-*"))
    for folder in ("stopped", "whole"):
        assert toy(tmp_path / folder, *words).returncode == 0
    ended = [CheckpointStore(tmp_path / folder / "checkpoints").path(40) for folder in ("stopped", "whole")]
    assert len({(path / "model.safetensors").read_bytes() for path in ended}) == 1


def test_too_little_memory_is_an_estimate_and_a_hint(tmp_path: Path) -> None:
    done = shell('ulimit -v 3000000; "$@"', tmp_path, "--width", "16000")
    assert done.returncode == 1, done.stderr
    assert "memory" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
