"""Seconds until `orrery --help` and `import orrery` are done, medians of fresh processes in turns, beside bare Python.

.venv/bin/python benchmarks/startup.py [--rounds 9] [--output FILE]
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from _record import Record, parsed, parser

COMMANDS = {
    "orrery --help": ["-m", "orrery", "--help"],
    "import orrery": ["-c", "import orrery"],
    "python -c pass": ["-c", "pass"],
}


def run(words: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of a fresh process on the clock, and on processors."""
    before, start = os.times(), time.perf_counter()
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "ORRERY_KERNEL": os.environ.get("ORRERY_KERNEL", "auto")}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def start_up(rounds: int) -> dict[str, dict[str, float]]:
    """Return the median seconds of each command, on the clock and on processors; they run in turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, words in COMMANDS.items():
            taken[name].append(run(words))
    by_command = {}
    for name, own in taken.items():
        clock, used = (statistics.median(column) for column in zip(*own, strict=True))
        by_command[name] = {"seconds": round(clock, 4), "processor_seconds": round(used, 4)}
        print(f"{name:16}{clock:.3f} s, of processors {used:.3f} s", flush=True)
    return by_command


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=9)
    options = parsed(made, {"rounds": 1})
    record = Record(options)
    record.write({"rounds": options.rounds, "commands": start_up(options.rounds)})


if __name__ == "__main__":
    main()
