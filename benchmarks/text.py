"""Seconds and memory to encode one 10 MB line with every kind of tokenizer, and 1 MB of one letter.

.venv/bin/python benchmarks/text.py [published vocabulary ...]

Fault 26 asks of byte_bpe at most 3 seconds and 200 MB. Each measurement has a process of its own.
"""

import resource
import subprocess
import sys
import time

from orrery.text import load_tokenizer
from orrery.text.kinds import KINDS
from orrery.text.train import train_tokenizer

WORDS = "the quick brown fox 12345 jumps, over it's lazy dogs' (tails)  and runs   "
TEXTS = {"one line of 10 MB": (WORDS * 140_000)[:10_000_000], "1 MB of one letter": "a" * 1_000_000}


def measure(name: str) -> None:
    """Print what each text takes; a name that is no kind is a file."""
    made = train_tokenizer(name, [WORDS * 3, "a" * 100_000], 400) if name in KINDS else load_tokenizer(name)
    for text, content in TEXTS.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, used = time.perf_counter(), time.process_time()
        tokens = len(made.encode(content))
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"{name:>10}, {text}: {seconds:.2f} s ({processor:.2f} s of processors), {more:.0f} MB, {tokens:,} tokens",
            flush=True,
        )


def main() -> None:
    for name in (*KINDS, *sys.argv[1:]):
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main()
