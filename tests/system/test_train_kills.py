"""The real command, killed again and again with SIGKILL, ends with the bytes of a run that never was."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
import yaml

import programs

RECIPE = {
    "name": "killed",
    "model": {
        "family": "llama",
        "config": {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 32,
        },
        "dropout": 0.1,
    },
    "tokenizer": {"kind": "byte_bpe", "vocabulary": 300},
    "data": {"train": "text.txt", "split": {"tail": 0.1}},
    "batches": {"kind": "crops", "length": 32, "size": 8},
    "training": {"steps": 120, "micro_batch": 3, "optimizer": {"kind": "adamw", "rate": 0.003}},
    "evaluation": {"every": 40},
    "checkpoints": {"every": 10, "keep": 2},
    "logging": {"every": 5},
}
TEXT = " ".join(f"line {n} of a text that goes on for {n * 7 % 101} words and then stops." for n in range(900))


def command(folder: Path, *words: str) -> list[str]:
    return [*programs.ORRERY, "train", "recipe.yaml", "--output", str(folder), *words]


@pytest.mark.slow
def test_the_command_survives_kills(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    (tmp_path / "text.txt").write_text(TEXT)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = {"cwd": tmp_path, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    programs.run(command(Path("whole")), check=True, **run)
    rng, folder = random.Random(0), tmp_path / "killed"
    for _ in range(4):
        process = programs.Program(command(folder, "--resume"), **run)
        metrics, before = folder / "metrics.jsonl", time.monotonic()
        size = metrics.stat().st_size if metrics.exists() else 0
        while time.monotonic() - before < 60 and not (metrics.exists() and metrics.stat().st_size > size):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.wait()
    # A cold start, whose hash tables are in another order than those of the forks.
    subprocess.run(command(folder, "--resume"), check=True, **run)
    for name in ("final/model.safetensors", "final/config.json", "final/tokenizer.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
