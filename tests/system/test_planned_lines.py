"""Every line that ``orrery plan`` prints for four processes runs as it is printed, or is refused by name."""

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from orrery.checkpoints.tensors import read_tensors
from orrery.errors import UsageError
from orrery.laws.ranks import free_port
from programs import ORRERY

RECIPE = """
name: planned
model:
  family: llama
  config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 4}
tokenizer: {kind: character}
data: {train: text.txt}
batches: {length: 16, size: 8}
training: {steps: 3, device: cpu, precision: float32, optimizer: {kind: sgd, rate: 0.1}}
checkpoints: {every: 3}
"""
RUNS = ("data=4", "fsdp=4", "data=2,fsdp=2,zero=2", "tensor=4", "data=2,tensor=2", "fsdp=2,tensor=2,recompute=full")
RUNS += ("tensor=4,sequence=no,recompute=selective", "data=4,micro=2", "pipeline=4", "context=4", "data=2,context=2")
RUNS += ("pipeline=2,interleave=2,data=2", "fsdp=2,context=2", "context=2,tensor=2,recompute=full")
REFUSED = ("pipeline=2,tensor=2", "pipeline=2,context=2", "fsdp=4,zero=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("planned")
    (place / "text.txt").write_text("the cat sat on the mat. " * 200)
    (place / "recipe.yaml").write_text(RECIPE)
    return place


def planned(folder: Path, layout: str) -> tuple[list[str], str]:
    """Return the words of the line that the plan of a layout prints, and what is said below it."""
    words = [*ORRERY, "plan", "recipe.yaml", "--devices", "4", "--batch", "128"]
    words += ["--layout", layout] if layout else []
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-2].startswith("torchrun "), said
    return shlex.split(said[-2].replace("RECIPE", "recipe.yaml")), said[-1]


def run(folder: Path, words: list[str], output: str) -> subprocess.CompletedProcess[str]:
    """Run a printed line, at a port of its own, into a folder of its own."""
    port = free_port()
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": place, "PET_MASTER_PORT": str(port)}
    return subprocess.run([*words, "--output", output], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, torch.Tensor]:
    done = subprocess.run([*ORRERY, "train", "recipe.yaml", "--output", "alone"], cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    return read_tensors(folder / "alone" / "final" / "model.safetensors")


@pytest.mark.long
@pytest.mark.parametrize("layout", ["", *RUNS])
def test_a_printed_line_runs(layout: str, folder: Path, alone: dict[str, torch.Tensor]) -> None:
    words, below = planned(folder, layout)
    assert below == "the keys parallel.* are those of a recipe"
    done = run(folder, words, layout or "best")
    assert done.returncode == 0, done.stdout + done.stderr
    found = read_tensors(folder / (layout or "best") / "final" / "model.safetensors")
    assert found.keys() == alone.keys()
    apart = max(float((found[name] - alone[name]).abs().max() / alone[name].abs().max()) for name in alone)
    assert apart < 1e-6


@pytest.mark.long
@pytest.mark.parametrize("layout", REFUSED)
def test_a_printed_line_is_refused_by_name(layout: str, folder: Path) -> None:
    words, below = planned(folder, layout)
    named = re.findall(r"parallel\.(\w+)", below)
    assert named
    done = run(folder, words, layout)
    assert done.returncode != 0
    assert any(f"{name} {value}" in done.stderr for name, value in degrees(words).items() if name in named), done.stderr
    assert not (folder / layout).exists()
    # As torchrun ends with a code of its own, the refusal is asked of one process too.
    own = subprocess.run([*ORRERY, *words[words.index("train") :]], cwd=folder, capture_output=True)
    assert own.returncode == UsageError.exit_code


def degrees(words: list[str]) -> dict[str, str]:
    """Return the degrees of a line."""
    pairs = pairwise(words)
    return {name.removeprefix("--parallel."): value for name, value in pairs if name.startswith("--parallel.")}
