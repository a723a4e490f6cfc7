"""Seconds and memory to encode one 10 MB line with every kind of tokenizer, and 1 MB of one letter.

.venv/bin/python benchmarks/text.py [--kinds NAME ...] [--files VOCABULARY ...] [--output FILE]

Fault 26 asks of byte_bpe at most 3 seconds and 200 MB. Each measurement has a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from _record import Record, parsed, parser

WORDS = "the quick brown fox 12345 jumps, over it's lazy dogs' (tails)  and runs   "


def main() -> None:
    options = parse()
    if options.one:
        print(json.dumps(measure(options.one, options.megabytes)))
        return
    from orrery.text.kinds import TOKENIZERS

    record = Record(options, ["tokenizers"])
    rows = [run_child(options, name) for name in (*(options.kinds or TOKENIZERS.names()), *options.files)]
    record.write({"megabytes": options.megabytes, "rows": [row for own in rows for row in own]})


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--kinds", nargs="*", help="kinds of tokenizers; all where none is named")
    made.add_argument("--files", nargs="*", default=[], help="published vocabularies")
    made.add_argument("--megabytes", type=float, default=10, help="of the line of words; a tenth of it of one letter")
    made.add_argument("--one", help=argparse.SUPPRESS)
    return parsed(made, {"kinds": ["byte_bpe"], "megabytes": 0.1})


def run_child(options: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """Measure a kind or a file in a process of its own; print and return a row for each text."""
    command = [sys.executable, __file__, "--one", name, "--megabytes", str(options.megabytes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for row in rows:
        print(
            f"{row['kind']:>10}, {row['text']}: {row['seconds']:.2f} s ({row['processor_seconds']:.2f} s of processors)"
            f", {row['megabytes']:.0f} MB, {row['tokens']:,} tokens",
            flush=True,
        )
    return rows


def measure(name: str, megabytes: float) -> list[dict[str, Any]]:
    """Return what each text takes; a name that is no kind is a file."""
    from orrery.text import load_tokenizer
    from orrery.text.kinds import TOKENIZERS
    from orrery.text.train import train_tokenizer

    size = int(megabytes * 1e6)
    texts = {"one line of words": (WORDS * (size // len(WORDS) + 1))[:size], "one letter": "a" * (size // 10)}
    made = (
        train_tokenizer(name, [WORDS * 3, "a" * 100_000], 400) if name in TOKENIZERS.names() else load_tokenizer(name)
    )
    rows = []
    for text, content in texts.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, used = time.perf_counter(), time.process_time()
        tokens = len(made.encode(content))
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        numbers = {"seconds": round(seconds, 3), "processor_seconds": round(processor, 3), "megabytes": round(more, 1)}
        rows.append({"kind": name, "text": text, "bytes": len(content), **numbers, "tokens": tokens})
    return rows


if __name__ == "__main__":
    main()
