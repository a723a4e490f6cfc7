"""Looking into 8,192 tokens: the most memory that it takes, beside what was stated before it ran.

    python benchmarks/long_text.py --output benchmarks/long_text.json

A small GPT-2 with random weights reads the text in a process of its own. The pass of the page runs with every check,
then the pictures of all heads are asked for, and of one head the overview, tiles and a row. Memory is the most resident
memory of the process less that before the pass, when the model was loaded and a short text had been looked into.
Whole patterns would take ``layers x heads x tokens^2 x 4`` bytes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser


def main() -> None:
    options = parse()
    if options.child:
        print(json.dumps(measure(options)))
        return
    record = Record(options)
    sizes = [f"--{size}={getattr(options, size)}" for size in ("tokens", "layers", "heads", "width")]
    done = subprocess.run([sys.executable, __file__, "--child", *sizes], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or f"the child ended with {done.returncode}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for name in ("stated", "measured", "patterns"):
        print(f"{name:9} {measured[name] / 2**20:10,.0f} MiB", flush=True)
    record.write(measured)
    sys.exit(int(not (measured["measured"] <= measured["stated"] and measured["passed"])))


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--tokens", type=int, default=8192)
    made.add_argument("--layers", type=int, default=2)
    made.add_argument("--heads", type=int, default=4)
    made.add_argument("--width", type=int, default=64)
    made.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parsed(made, {"tokens": 512, "width": 32})


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Look into a text and return bytes, seconds, and whether every check passed."""
    import tempfile

    import torch

    from orrery.exchange.saving.save import save_model
    from orrery.families import load_family
    from orrery.language_model.load import load
    from orrery.page.views._inside import Inside
    from orrery.page.views._view import ViewSubject, shown
    from orrery.text.train import train_tokenizer

    tokenizer = train_tokenizer("byte_bpe", ["the cat sat on the mat\n"] * 3, 290)
    config = {"vocab_size": tokenizer.size, "n_positions": options.tokens, "n_embd": options.width}
    config |= {"n_layer": options.layers, "n_head": options.heads}
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "m", load_family("gpt2").spec(config).build(0).eval(), "gpt2", config, tokenizer)
        lm = load(Path(folder) / "m", "cpu", "float32", say=lambda line: None)
    ids = torch.randint(3, 260, (options.tokens,)).tolist()
    Inside(lm, {"ids": ids[:64]})
    before, began = now_bytes(), time.perf_counter()
    inside = Inside(lm, {"ids": ids})
    passed = time.perf_counter()
    subject, middle = ViewSubject(lm, inside), options.tokens // 2
    asked: list[dict[str, int]] = [
        {},
        {"layer": 1, "head": 2},
        {"layer": 1, "head": 2, "row": middle, "column": middle},
    ]
    asked.append({"layer": 1, "head": 2, "query": options.tokens - 1})
    payloads = [shown("attention", subject, given) for given in asked]
    checks = [*inside.checks, *(check for payload in payloads for check in payload.checks)]
    return {
        **{name: getattr(options, name) for name in ("tokens", "layers", "heads", "width")},
        "stated": inside.memory.total,
        "measured": peak_bytes() - before,
        "patterns": options.layers * options.heads * options.tokens**2 * 4,
        "largest_payload": max(len(payload.to_bytes()) for payload in payloads),
        "seconds": {"pass": round(passed - began, 1), "views": round(time.perf_counter() - passed, 1)},
        "passed": all(check.passed for check in checks),
    }


def now_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Return the most resident memory that this process has had; Linux counts in kibibytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
