"""Peak memory of a trace: how much more than the plain forward and what is kept?

    python benchmarks/trace_memory.py --output benchmarks/trace_memory.json  (8,192 tokens, 12 layers: minutes)
    python benchmarks/trace_memory.py --tokens 2048                          (seconds)

The forward and the trace run in a process each, in float32 without gradients, on the same model and tokens. The
trace keeps one pattern, ``blocks.6.attention.pattern``, and runs every check. Peak is the most resident memory that the
process had, the interpreter, torch and the weights among it, so that the ratio is held by the weights in a short run
and by the patterns in a long one: ``(trace) / (forward + kept)``.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from _record import Record, parsed, parser

BAR = 1.3
"""The most that a trace may take, in units of the plain forward and what is kept."""
VOCABULARY = 256


def main() -> None:
    options = parse()
    if options.child:
        print(json.dumps(measure(options.child, options)))
        return
    record = Record(options)
    rows = {name: run_child(name, options) for name in ("forward", "trace")}
    forward, trace = rows["forward"], rows["trace"]
    ratio = trace["peak"] / (forward["peak"] + trace["kept"])
    measured = {
        **{name: getattr(options, name) for name in ("tokens", "layers", "heads", "width", "keep")},
        "forward": forward["peak"],
        "trace": trace["peak"],
        "kept": trace["kept"],
        "ratio": round(ratio, 4),
        "seconds": {name: row["seconds"] for name, row in rows.items()},
        "checks": trace["checks"],
    }
    for name in ("forward", "trace", "kept"):
        print(f"{name:8} {measured[name] / 2**20:10,.0f} MB")
    print(f"trace / (forward + kept) = {ratio:.3f}, the bar is {BAR}", flush=True)
    record.write(measured)
    sys.exit(int(not (ratio <= BAR and all(check["passed"] for check in trace["checks"]))))


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--tokens", type=int, default=8192)
    made.add_argument("--layers", type=int, default=12)
    made.add_argument("--heads", type=int, default=12)
    made.add_argument("--width", type=int, default=768)
    made.add_argument("--keep", nargs="*", default=["blocks.6.attention.pattern"], help="patterns of keys")
    made.add_argument("--child", choices=["forward", "trace"], help=argparse.SUPPRESS)
    small = {"tokens": 128, "layers": 2, "heads": 2, "width": 32, "keep": ["blocks.1.attention.pattern"]}
    return parsed(made, small)


def run_child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    sizes = [f"--{size}={getattr(options, size)}" for size in ("tokens", "layers", "heads", "width")]
    command = [sys.executable, __file__, "--child", name, *sizes, "--keep", *options.keep]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or f"the {name} ended with {done.returncode}")
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run the forward or the trace and return the peak in bytes, the bytes that are kept, and the checks."""
    import torch

    from orrery.families import load_family
    from orrery.inspection.trace import trace

    config = {"vocab_size": VOCABULARY, "n_positions": options.tokens, "n_embd": options.width}
    torch.manual_seed(0)
    model = load_family("gpt2").spec({**config, "n_layer": options.layers, "n_head": options.heads}).build(0).eval()
    ids_BL = torch.randint(VOCABULARY, (1, options.tokens))
    kept, checks, began = 0, [], time.perf_counter()
    if name == "forward":
        with torch.no_grad():
            model.logits(ids_BL)
    else:
        seen = trace(model, ids_BL, keep=options.keep)
        kept = sum(value.nbytes for value in seen.values.values())
        checks = [{"name": c.name, "value": c.value, "bound": c.bound, "passed": c.passed} for c in seen.checks]
    return {"peak": peak_bytes(), "kept": kept, "checks": checks, "seconds": round(time.perf_counter() - began, 1)}


def peak_bytes() -> int:
    """Return the most resident memory that this process has had; Linux counts in kibibytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
