"""Seconds until `orrery --help` and `import orrery` are done, medians of 9 fresh processes, beside a bare Python.

.venv/bin/python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "orrery --help": ["-m", "orrery", "--help"],
    "import orrery": ["-c", "import orrery"],
    "python -c pass": ["-c", "pass"],
}


def seconds(words: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    for name, words in COMMANDS.items():
        print(f"{name:16}{statistics.median(seconds(words) for _ in range(9)):.3f} s")


if __name__ == "__main__":
    main()
