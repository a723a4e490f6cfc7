"""Two processes on two cores beside one on one: tokens a second of a training of 30 million parameters.

    .venv/bin/python benchmarks/two_processes.py --text INPUT.TXT --output benchmarks/two_processes.json

One process of one thread and two of one thread each take the same recipe, the same batches and as many steps, in turn,
so that a change of the machine's speed meets all; a ratio is the median over rounds of the ratio within a round. Two
share a batch (`data`) or the weights too (`fsdp 2`). Beside them the plain matrix products of the model: how much more
two processes multiply than one, which is what the machine has to give; cores that share their units of multiplication
give less than two.
"""

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import yaml
from _record import Record, parsed, parser

WIDTH, HIDDEN, LAYERS, LENGTH, ROWS = 512, 1376, 10, 256, 16
LAYOUTS: dict[str, tuple[int, list[str]]] = {
    "one process": (1, []),
    "two, data": (2, []),
    "two, fsdp 2": (2, ["--parallel.fsdp", "2"]),
}
WARM = 2
"""Steps that are not counted."""


def recipe(text: Path, steps: int, small: bool) -> dict[str, Any]:
    """Return the recipe of a small Llama over characters."""
    width, layers = (32, 1) if small else (WIDTH, LAYERS)
    config = {
        "hidden_size": width, "intermediate_size": 4 * width if small else HIDDEN, "num_hidden_layers": layers,
        "num_attention_heads": 8, "max_position_embeddings": LENGTH,
    }  # fmt: skip
    return {
        "name": "two-processes",
        "model": {"family": "llama", "config": config},
        "tokenizer": {"kind": "character"},
        "data": {"train": str(text), "split": {"tail": 0.1}},
        "batches": {"kind": "crops", "length": LENGTH, "size": ROWS},
        "objective": {"kind": "causal"},
        "training": {
            "steps": steps, "optimizer": {"kind": "adamw", "rate": 3e-4}, "clip": 1.0,
            "schedule": {"kind": "cosine", "warmup": 0, "final": 0.1},
        },
        "evaluation": {"every": 10_000, "batches": 1},
        "checkpoints": {"every": 10_000, "keep": 1},
        "logging": {"every": 1},
    }  # fmt: skip


def run(folder: Path, name: str, precision: str) -> float:
    """Train once and return the median of the tokens a second of its steps."""
    count, words = LAYOUTS[name]
    output = folder / "run"
    alone = [sys.executable, "-m"]
    together = [*alone, "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [*(alone if count == 1 else together), "orrery", "train", str(folder / "recipe.yaml"), "--output"]
    command += [str(output), "--overwrite", "--training.precision", precision, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    steps = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [step["tokens_per_second"] for step in steps if "tokens_per_second" in step]
    return statistics.median(speeds[WARM:] or speeds)


def multiply(seconds: float, dtype: torch.dtype, told: Any = None) -> float:
    """Return how many products of the model's widest layers one process takes in a second."""
    torch.set_num_threads(1)
    x, w = torch.randn(ROWS * LENGTH // 2, WIDTH).to(dtype), torch.randn(HIDDEN, WIDTH).to(dtype)
    torch.nn.functional.linear(x, w)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        torch.nn.functional.linear(x, w)
        count += 1
    rate = count / (time.perf_counter() - began)
    if told is not None:
        told.put(rate)
    return rate


def products(seconds: float, dtype: torch.dtype) -> float:
    """Return how many times as many products two processes take as one."""
    processes = multiprocessing.get_context("spawn")

    def rates(count: int) -> float:
        told = processes.Queue()
        all_of_them = [processes.Process(target=multiply, args=(seconds, dtype, told)) for _ in range(count)]
        for each in all_of_them:
            each.start()
        found = [told.get() for _ in all_of_them]
        for each in all_of_them:
            each.join()
        return sum(found)

    alone = rates(1)
    return rates(2) / alone


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--text", type=Path, help="a text of a megabyte, such as tiny Shakespeare's input.txt")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--steps", type=int, default=10)
    made.add_argument("--seconds", type=float, default=5.0, help="of plain products")
    options = parsed(made, {"rounds": 1, "steps": 3, "seconds": 0.2}, needs=("text",))
    record, found = Record(options), dict[str, Any]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = options.text or folder / "text.txt"
        if options.text is None:
            text.write_text("to be or not to be, that is the question\n" * 2_000, encoding="utf-8")
        content = recipe(text.resolve(), options.steps, options.small)
        (folder / "recipe.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
            speeds: dict[str, list[float]] = {name: [] for name in LAYOUTS}
            plain = []
            for _ in range(options.rounds):
                for layout, own in speeds.items():
                    own.append(run(folder, layout, precision))
                plain.append(products(options.seconds, dtype))
            one = speeds["one process"]
            found[precision] = {
                "tokens_per_second": {name: round(statistics.median(own)) for name, own in speeds.items()},
                "times one process": {
                    name: [round(two / alone, 3) for two, alone in zip(own, one, strict=True)]
                    for name, own in speeds.items()
                    if name != "one process"
                },
                "plain products, two processes over one": [round(each, 3) for each in plain],
            }
            print(json.dumps({precision: found[precision]}, indent=1), flush=True)
    record.write({"rounds": options.rounds, **found})


if __name__ == "__main__":
    main()
