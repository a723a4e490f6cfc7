"""Resident memory of a training, from step 500 to the last: does it stay, or does it grow?

    python benchmarks/memory.py --output benchmarks/memory.json        (5,000 steps of four families, minutes)
    python benchmarks/memory.py --families rnnsearch --steps 600       (shows what grew)
    python benchmarks/memory.py --families rnnsearch --kernels 1024    (as it was: oneDNN's own bound)

Each family trains in a process of its own through the loop that `orrery train` runs, on sentences of drawn words:
pairs of 3 to 14 words in batches of like length for the two that translate, rows of one length for the two that do not.
Resident is the highest size of the process in the last fifth before the step; held is what the program has not given
back to its allocator.
"""

import argparse
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser

PAIRS = {
    "rnnsearch": {"hidden_size": 32, "max_position_embeddings": 64},
    "transformer": {"d_model": 32, "num_layers": 1, "num_heads": 2, "d_ff": 64, "max_position_embeddings": 64},
}
TEXTS = {
    "lstm": {"hidden_size": 32, "num_layers": 1, "max_position_embeddings": 64},
    "llama": {
        **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
        "max_position_embeddings": 64,
    },
}
GROWTH = 0.02
"""The most that resident memory may grow by, from the first mark to the last."""


def main() -> None:
    options = parse()
    if options.child:
        print(json.dumps(measure(options.child, options.steps)))
        return
    record, rows = Record(options), []
    for family in options.families:
        for seed in range(options.repeat):
            rows.append(run_child(options, family))
            show(rows[-1], seed)
    record.write({"kernels": options.kernels, "rows": rows})
    sys.exit(int(any(row["growth"] > GROWTH for row in rows)))


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    families = [*PAIRS, *TEXTS]
    made.add_argument("--families", nargs="+", choices=families, default=families)
    made.add_argument("--steps", type=int, default=5_000)
    made.add_argument("--repeat", type=int, default=1)
    made.add_argument("--kernels", type=int, help="how many kernels are kept, in the place of Orrery's own number")
    made.add_argument("--child", choices=families, help=argparse.SUPPRESS)
    return parsed(made, {"families": ["lstm"], "steps": 20})


def run_child(options: argparse.Namespace, family: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", family, "--steps", str(options.steps)]
    chosen = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": options.kernels, "LRU_CACHE_CAPACITY": options.kernels}
    environment = {name: str(value) for name, value in chosen.items() if value is not None}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        sys.exit(done.stderr)
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


def measure(family: str, steps: int) -> dict[str, Any]:
    """Train one family and return its sizes at ten marks, in MB."""
    import torch

    from orrery.runs.assemble import assemble
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import train

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recipe = make_recipe(family, steps, Path(folder))
        watch = Watch(steps)
        with open_run_folder(Path(folder) / "run", resume=False, overwrite=False) as opened:
            outcome = train(assemble(recipe).parts, recipe, opened, reporter=watch)
        precision = outcome.arithmetic.partition(" on ")[0]
    resident = [mark["resident"] for mark in watch.marks]
    return {
        "family": family,
        "steps": steps,
        "precision": precision,
        "growth": round(resident[-1] / resident[0] - 1, 4),
        "marks": watch.marks,
    }


class Watch:
    """Hears of every step, as the line on the terminal does, and notes the sizes at each tenth of the way."""

    def __init__(self, steps: int) -> None:
        self.every, self.highest, self.marks = max(1, steps // 10), 0.0, list[dict[str, float]]()

    def line(self, text: str) -> None:
        pass

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        place = step % self.every or self.every
        if place > 0.8 * self.every:
            self.highest = max(self.highest, resident_megabytes())
        if place == self.every:
            self.marks.append({"step": step, "resident": round(self.highest, 1), "held": round(held_megabytes(), 1)})
            self.highest = 0.0

    def close(self) -> None:
        pass


def resident_megabytes() -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def held_megabytes() -> float:
    """What the C library has given out and not been given back."""
    names = ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    kind = type("Info", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = kind
    info = ask()
    return (info.uordblks + info.hblkhd) / 2**20


def make_recipe(family: str, steps: int, folder: Path) -> Any:
    from orrery.recipes.read import check_recipe

    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 7))) for _ in range(100)]
    lines = [" ".join(draw.choices(words, k=draw.randint(3, 14))) for _ in range(6_000)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    (folder / "turned.txt").write_text("\n".join(" ".join(line.split()[::-1]) for line in lines) + "\n")
    pairs = {"source": str(folder / "text.txt"), "target": str(folder / "turned.txt")}
    data = {"pairs": pairs} if family in PAIRS else {"train": str(folder / "text.txt")}
    recipe = {
        "name": f"memory-{family}",
        "model": {"family": family, "config": {**PAIRS, **TEXTS}[family]},
        "tokenizer": {"kind": "word"},
        "data": data,
        "batches": {"kind": "pairs" if family in PAIRS else "crops", "length": 24, "size": 8},
        "objective": {"kind": "seq2seq" if family in PAIRS else "causal"},
        "training": {"steps": steps, "device": "cpu", "optimizer": {"kind": "adamw", "rate": 1e-3}},
        "logging": {"every": 500},
        "checkpoints": {"every": 2_500, "keep": 1},
    }
    return check_recipe(recipe, "benchmark")


def show(row: dict[str, Any], number: int) -> None:
    marks = "  ".join(f"{mark['step']:,}: {mark['resident']:.0f} ({mark['held']:.0f})" for mark in row["marks"])
    print(f"{row['family']:12} {row['precision']}  MB resident (held) at step {marks}", flush=True)
    verdict = "flat" if row["growth"] <= GROWTH else "GROWS"
    print(f"{'':12} growth from the first mark {row['growth']:+.1%}: {verdict}", flush=True)


if __name__ == "__main__":
    main()
