"""Seconds to encode one 10 MB line and 1 MB of one letter: fault 26 asks for at most 3 seconds and 200 MB.

.venv/bin/python benchmarks/text.py
"""

import resource
import time

from orrery.text.train import train_tokenizer

WORDS = "the quick brown fox 12345 jumps, over it's lazy dogs' (tails)  and runs   "


def main() -> None:
    tokenizer = train_tokenizer("byte_bpe", [WORDS * 3, "a" * 1_000_000], 400)
    for name, text in (("one line of 10 MB", (WORDS * 140_000)[:10_000_000]), ("1 MB of one letter", "a" * 1_000_000)):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        ids = tokenizer.encode(text)
        seconds = time.perf_counter() - start
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{name}: {seconds:.2f} s, {more:.0f} MB more, {len(ids):,} tokens")


if __name__ == "__main__":
    main()
