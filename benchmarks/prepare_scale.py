"""Seconds, MB/s and peak memory of `orrery data prepare` on a large file, killed once in the middle and continued.

.venv/bin/python benchmarks/prepare_scale.py [--megabytes 1000] [--parts 8] [--tokenizer FOLDER] [--folder FOLDER]
    [--output FILE]

With ``--parts`` two workers prepare that many parts beside the whole, one part is killed and gone on with, so is the
joining, and what is joined has to be the bytes of the whole.

The file is the English novels (eltec-novels) again and again, each sentence with some words changed, so that no
cache of words sees the same text twice. Peak memory is that of the whole process tree, as the system reports it
for finished children: the largest of the process and of those it started.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _record import Record, parsed, parser

from orrery.data.shards.large_text import ReadingOptions, read_texts

CORPUS = "eltec-novels"


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--megabytes", type=int, default=1000)
    made.add_argument("--parts", type=int, help="prepare so many parts by two workers, and join them")
    made.add_argument("--tokenizer", type=Path)
    made.add_argument("--folder", type=Path)
    given = parsed(made, {"megabytes": 2})
    record = Record(given, ["tokenizers"])
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        needed, free = given.megabytes * 2_500_000, shutil.disk_usage(folder).free
        if free < needed:
            sys.exit(f"{folder} has {free:,} bytes free, {needed:,} are needed: give --folder")
        source = make_source(folder / "source.txt", given.megabytes * 1_000_000)
        tokenizer = given.tokenizer or train(folder / "tokenizer", str(source) if given.small else CORPUS)
        numbers = measure(source, tokenizer, folder, given.parts)
    print(json.dumps(numbers, indent=1))
    record.write(numbers)


def make_source(file: Path, size: int) -> Path:
    """Write a text of ``size`` bytes, or a little more."""
    rng, written = random.Random(0), 0
    with open(file, "w", encoding="utf-8", newline="") as stream:
        while written < size:
            for text in read_texts(CORPUS, ReadingOptions()):
                for line in varied(text, rng):
                    written += len(line.encode())
                    stream.write(line)
                if written >= size:
                    break
    return file


def varied(text: str, rng: random.Random) -> Iterator[str]:
    """Yield the lines of a text, one word in each replaced by one that no vocabulary holds."""
    for line in text.splitlines(keepends=True):
        words = line.split(" ")
        words[rng.randrange(len(words))] += f"{rng.getrandbits(40):x}"
        yield " ".join(words)


def train(folder: Path, corpus: str) -> Path:
    """Train a byte-level BPE by the command: of 32,000 ids on the novels, of a few on a small source."""
    ids = "32000" if corpus == CORPUS else "1000"
    subprocess.run([*orrery("tokenizer", "train", corpus, "--vocabulary", ids), "-o", str(folder)], check=True)
    return folder


def measure(source: Path, tokenizer: Path, folder: Path, parts: int | None) -> dict[str, float]:
    """Prepare the file whole, then again with a kill in the middle, or in parts; compare the bytes."""
    seconds, peak = run(command(source, tokenizer, folder / "whole"))
    size = source.stat().st_size
    numbers = {"bytes": size, "seconds": round(seconds, 1), "megabytes_per_second": round(size / 1e6 / seconds, 2)}
    if parts:
        return numbers | in_parts(source, tokenizer, folder, parts, seconds)
    first, killed_peak = run(command(source, tokenizer, folder / "killed"), stop=seconds / 2)
    second, resumed_peak = run(command(source, tokenizer, folder / "killed"))
    refuse_other_bytes(folder / "whole", folder / "killed")
    return numbers | {
        "peak_megabytes": round(max(peak, killed_peak, resumed_peak)),
        "seconds_until_killed": round(first, 1),
        "seconds_after_it": round(second, 1),
    }


def in_parts(source: Path, tokenizer: Path, folder: Path, parts: int, seconds: float) -> dict[str, float]:
    """Prepare every part by two workers, one part killed in its middle, and join them, killed too."""
    joining = command(source, tokenizer, folder / "joined")
    kill = (parts + 1) // 2, seconds / parts / 2

    def part(number: int) -> tuple[float, float]:
        words = [*joining, "--part", f"{number}/{parts}"]
        before = run(words, stop=kill[1]) if number == kill[0] else (0.0, 0.0)
        after = run(words)
        return before[0] + after[0], max(before[1], after[1])

    start = time.perf_counter()
    with ThreadPoolExecutor(2) as workers:
        each = list(workers.map(part, range(1, parts + 1)))
    together = time.perf_counter() - start
    first, _ = run(joining, stop=seconds / parts / 4)
    second, peak = run(joining)
    refuse_other_bytes(folder / "whole", folder / "joined")
    return {
        "parts": parts,
        "peak_megabytes": round(max(peak, *(most for _, most in each))),
        "seconds_of_all_parts": round(together, 1),
        "seconds_of_the_longest_part": round(max(took for took, _ in each), 1),
        "seconds_until_the_joining_was_killed": round(first, 1),
        "seconds_of_the_joining_after_it": round(second, 1),
    }


def refuse_other_bytes(one: Path, other: Path) -> None:
    """End with an error where two preparations differ in a byte."""
    subprocess.run(["diff", "-r", str(one), str(other), "-x", "lock", "-x", "part-*"], check=True)


def command(source: Path, tokenizer: Path, folder: Path) -> list[str]:
    """Return the command line of a preparation."""
    return orrery("data", "prepare", str(source), "--tokenizer", str(tokenizer), "-o", str(folder))


def orrery(*words: str) -> list[str]:
    """Return a command line of this program."""
    return [sys.executable, "-m", "orrery", *words]


def run(words: list[str], stop: float | None = None) -> tuple[float, float]:
    """Run a command, killed after ``stop`` seconds; return its seconds and peak memory in megabytes."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    if stop is not None:
        time.sleep(stop)
        process.send_signal(signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (0 if stop is None else -signal.SIGKILL):
        sys.exit(f"{' '.join(words)} left with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
