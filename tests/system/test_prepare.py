"""`orrery data prepare` as a process: killed, interrupted, without room, and its memory on a larger text."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import programs
from full_disk import can_mount
from orrery.text.train import train_tokenizer
from programs import DEVNULL, ORRERY, PIPE, Program

WORDS = ["the", "a", "brown", "quick", "fox", "jumps", "over", "lazy", "dog", "sea", "ship", "storm", "night", "day"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return a folder with text.txt of 6 MB, rows.jsonl of the same lines, and a tokenizer."""
    folder, rng = tmp_path_factory.mktemp("corpus"), random.Random(0)
    lines = [" ".join(rng.choices(WORDS, k=40)) + f" {rng.getrandbits(50):x}.\n" for _ in range(30_000)]
    (folder / "text.txt").write_text("".join(lines))
    (folder / "rows.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    train_tokenizer("byte_bpe", lines[:500], 600).save(folder)
    return folder


def command(corpus: Path, source: str, folder: Path) -> list[str]:
    words = ["data", "prepare", str(corpus / source), "--tokenizer", str(corpus), "-o", str(folder)]
    return [*ORRERY, *words, "--shard-tokens", "100000"]


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}


def wait_for_commit(folder: Path, process: Program) -> None:
    """Wait until the process has recorded something new, or has ended."""
    index, begun = folder / "index.json", time.monotonic()
    before = index.stat().st_mtime_ns if index.exists() else 0
    while time.monotonic() - begun < 60 and process.poll() is None:
        if index.exists() and index.stat().st_mtime_ns > before:
            return
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["text.txt", "rows.jsonl"])
def test_killed_again_and_again_ends_with_the_bytes_of_a_run_that_never_was(source, corpus, tmp_path):
    programs.run(command(corpus, source, tmp_path / "whole"), check=True, capture_output=True)
    folder, rng, kills = tmp_path / "killed", random.Random(1), 0
    for _ in range(5):
        process = Program(command(corpus, source, folder), stdout=DEVNULL)
        wait_for_commit(folder, process)
        time.sleep(rng.uniform(0, 0.05))  # a shard takes about 0.1 s, and there are more of them than kills
        process.kill()
        kills += process.wait() == -signal.SIGKILL  # else it was done: that ends well too
    assert kills >= 3
    programs.run(command(corpus, source, folder), check=True, capture_output=True)
    assert content(folder) == content(tmp_path / "whole")


@pytest.mark.slow
def test_parts_that_run_beside_each_other_and_are_killed_join_to_the_bytes_of_one_run(corpus, tmp_path):
    programs.run(command(corpus, "text.txt", tmp_path / "whole"), check=True, capture_output=True)
    folder = tmp_path / "out"

    def begun(*numbers):
        words = command(corpus, "text.txt", folder)
        return [Program([*words, "--part", f"{number}/4"], stdout=DEVNULL) for number in numbers]

    for number, process in enumerate(begun(1, 2), 1):
        wait_for_commit(folder / f"part-{number}-of-4", process)
        process.kill()
        process.wait()
    early = programs.run(command(corpus, "text.txt", folder), capture_output=True, text=True)
    assert early.returncode == 3
    assert "3, 4 are not there" in early.stderr
    for pair in ((1, 2), (3, 4)):
        assert [process.wait() for process in begun(*pair)] == [0, 0]
    programs.run(command(corpus, "text.txt", folder), check=True, capture_output=True)
    assert content(folder) == content(tmp_path / "whole")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_says_how_to_go_on(number, code, corpus, tmp_path):
    for attempt in range(5):  # on a busy machine it may be done before the signal comes: then once more
        folder = tmp_path / f"out{attempt}"
        process = Program(command(corpus, "text.txt", folder), stderr=PIPE, text=True)
        wait_for_commit(folder, process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        if process.returncode:
            break
    assert process.returncode == code
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    assert json.loads((folder / "index.json").read_text())["complete"] is False


def test_two_in_one_folder_are_refused(corpus, tmp_path):
    first = Program(command(corpus, "text.txt", tmp_path / "out"), stdout=DEVNULL)
    wait_for_commit(tmp_path / "out", first)
    second = programs.run(command(corpus, "text.txt", tmp_path / "out"), capture_output=True, text=True)
    first.kill()
    first.wait()
    assert second.returncode == 5
    assert f"in use by process {first.pid}" in second.stderr


@pytest.mark.skipif(not can_mount(), reason="a full disk is a small one mounted here, which needs root")
def test_a_full_disk_is_an_error_and_what_is_written_stays(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    script = 'mount -t tmpfs -o size=1m tmpfs "$FOLDER"; "$@"; code=$?; cp -r "$FOLDER" "$FOLDER.copy"; exit $code'
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "bash", *command(corpus, "text.txt", tmp_path / "out")],
        capture_output=True,
        text=True,
        env={**os.environ, "FOLDER": str(tmp_path / "out")},
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "No space left on device" in done.stderr
    assert "run the same command again" in done.stderr
    copy = tmp_path / "out.copy"
    programs.run(command(corpus, "text.txt", copy), check=True, capture_output=True)
    programs.run(command(corpus, "text.txt", tmp_path / "whole"), check=True, capture_output=True)
    assert content(copy) == content(tmp_path / "whole")


@pytest.mark.parametrize("part", [[], ["--part", "1/2"]], ids=["whole", "part"])
def test_a_folder_with_something_else_is_refused(part, corpus, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    done = programs.run([*command(corpus, "text.txt", tmp_path / "out"), *part], capture_output=True, text=True)
    assert done.returncode == 2
    assert "it has notes.txt, which this command does not write" in done.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_written_is_refused(corpus, tmp_path):
    (tmp_path / "file").write_text("")
    done = programs.run(command(corpus, "text.txt", tmp_path / "file"), capture_output=True, text=True)
    assert done.returncode == 2
    assert "is a file" in done.stderr
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    wanted = command(corpus, "text.txt", closed / "out")
    if os.access(closed, os.W_OK):  # root may write into every folder but a read-only mount
        if not can_mount():
            pytest.skip("this user may write into every folder, and may mount none that is read-only")
        wanted = ["unshare", "-m", "bash", "-c", f'mount -t tmpfs -o ro tmpfs "{closed}"; exec "$@"', "bash", *wanted]
    done = subprocess.run(wanted, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def test_ten_times_the_text_needs_no_more_memory(corpus, tmp_path):
    """The large run differs from the small one in nothing but length, so its peak may not grow with it."""
    text = (corpus / "text.txt").read_text()
    peaks = []
    for name, size in (("small", 1_500_000), ("large", 9_000_000)):
        (tmp_path / f"{name}.txt").write_text((text * 3)[:size])
        words = command(corpus, str(tmp_path / f"{name}.txt"), tmp_path / name)
        # Through a small process: a child's peak counts what its parent held when it was made, here all of pytest.
        done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout.splitlines()[-1]))
    assert peaks[1] < 500
    assert peaks[1] - peaks[0] < 100, peaks
