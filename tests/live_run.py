"""A small run in a process of its own, which learns while somebody watches."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from demo_toy import write_ring
from programs import ORRERY, Program

RECIPE: dict[str, Any] = {
    "name": "ring",
    "model": {"family": "gpt2", "config": {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64}},
    "tokenizer": {"kind": "character"},
    "data": {"train": "ring", "split": {"tail": 0.1}},
    "batches": {"length": 32, "size": 4},
    "training": {"steps": 400, "optimizer": {"rate": 0.01}, "precision": "float32"},
    "evaluation": {"every": 25, "batches": 2, "sample": "The ring: "},
    "checkpoints": {"every": 50, "keep": 50},
    "logging": {"every": 2},
}


def command(folder: Path, **training: Any) -> list[str]:
    """Write the recipe and its text into a folder, and return the words that train it into ``folder/run``."""
    if not (folder / "ring").exists():
        write_ring(folder / "ring")
    recipe = {**RECIPE, "training": {**RECIPE["training"], **training}}
    (folder / "ring.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return [*ORRERY, "train", "ring.yaml", "--output", str(folder / "run")]


@contextmanager
def learning(folder: Path, patience: float = 120.0, **training: Any) -> Iterator[Path]:
    """Train in another process for a block, from its first checkpoint on; give the folder of the run."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / "said.txt").open("wb") as said:
        process = Program(command(folder, **training), cwd=folder, env=environment, stdout=said, stderr=said)
    try:
        end = time.monotonic() + patience
        while not (folder / "run" / "checkpoints" / "latest").exists():
            text = (folder / "said.txt").read_text(encoding="utf-8")
            assert process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.1)
        yield folder / "run"
    finally:
        process.terminate()
        process.wait(60)
