"""One of several processes is killed at any moment of a run: the others end in time, and what follows loses nothing.

Thirty kills over six layouts, in steps, in saves and in evaluations, each process among the lost ones.
"""

import math
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.tensors import read_tensors
from orrery.errors import MachineError
from orrery.laws.ranks import free_port

STEPS, EVERY = 40, 5
RECIPE = """
name: kills
model: {family: llama, config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2, num_attention_heads: 2}}
tokenizer: {kind: character}
data: {train: text.txt, val: held.txt}
batches: {length: 16, size: 4}
training: {steps: 40, device: cpu, precision: float32, optimizer: {rate: 0.01}}
evaluation: {every: 5, batches: 8}
checkpoints: {every: 5, keep: 9}
logging: {every: 1}
"""
MIXTRAL = "family: mixtral, config: {num_key_value_heads: 2, num_local_experts: 4, "
EXPERTS = RECIPE.replace("family: llama, config: {", MIXTRAL)
LAYOUTS = {"fsdp 2": ("fsdp=2",), "data 2": ("data=2",), "data 2 x fsdp 2": ("data=2", "fsdp=2")}
OTHERS = {"pipeline 2": ("pipeline=2",), "context 2": ("context=2",), "expert 2": ("data=2", "expert=2")}
"""Stages, shared rows and, in a model that has some, shared experts."""
ELSEWHERE = {"fsdp 2": "data 2", "data 2": "alone", "data 2 x fsdp 2": "fsdp 2"}
ELSEWHERE |= {"pipeline 2": "alone", "context 2": "fsdp 2", "expert 2": "data 2"}
"""In which layout a run goes on that does not go on in its own."""
KILLS = [
    *((layout, moment, number) for layout in LAYOUTS for moment in ("step", "save", "evaluation") for number in (0, 1)),
    ("fsdp 2", "step", 2),
    ("data 2 x fsdp 2", "save", 2),
    *((layout, moment, n) for layout in OTHERS for n, moment in enumerate(("step", "save", "evaluation"), 1)),
    ("pipeline 2", "save", 1),
]
"""Of an even number the run goes on in its own layout, of an odd one in another; it is the process that is lost too."""
NO_ROOM = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
NO_ROOM += "runpy.run_module('orrery', run_name='__main__')"


def started(
    folder: Path, output: str, layout: str, full: int | None = None, recipe: str = "recipe.yaml"
) -> list[subprocess.Popen[str]]:
    """Start the processes of a layout, of which one may have no room on its disk."""
    degrees = {**LAYOUTS, **OTHERS}.get(layout, ())
    world = math.prod(int(each.partition("=")[2]) for each in degrees if not each.startswith("expert"))
    port = free_port()
    words = ["train", recipe, "--resume", "--output", output, "--parallel.timeout", "60"]
    for each in degrees:
        name, _, value = each.partition("=")
        words += [f"--parallel.{name}", value]
    common = {**os.environ, "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    return [
        subprocess.Popen(
            [sys.executable, *(("-c", NO_ROOM) if rank == full else ("-m", "orrery")), *words],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            **streams,
        )
        for rank in range(world)
    ]


def recipe_of(layout: str) -> str:
    """Return the file that a layout trains."""
    return "expert 2.yaml" if layout == "expert 2" else "recipe.yaml"


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Return what the processes say until their end."""
    return [each.communicate(timeout=200)[1] for each in processes]


def come(run: Path, moment: str, rng: random.Random) -> Callable[[], bool]:
    """Return what says that the moment of a kill has come: some step, or what lies at it."""
    step = rng.randrange(EVERY, STEPS - EVERY)
    step = step if moment == "step" else step // EVERY * EVERY
    metrics, checkpoints = run / "metrics.jsonl", run / "checkpoints"

    def steps() -> int:
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    if moment == "evaluation":  # its line is written when it is over
        return lambda: steps() >= step - 1
    if moment == "save":
        done = {f"step-{each:06d}" for each in range(EVERY, step, EVERY)}
        return lambda: steps() >= step and any(place.name not in {*done, "latest"} for place in checkpoints.iterdir())
    return lambda: steps() >= step


def weights(run: Path) -> dict[str, str]:
    """Return the digests of the last checkpoint."""
    last = run / "checkpoints" / f"step-{STEPS:06d}"
    return {path.name: file_sha256(path) for path in last.glob("*.safetensors")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what gives the run of a layout that nobody interrupts, in a folder where others may begin."""
    folder = tmp_path_factory.mktemp("kills")
    (folder / "text.txt").write_text("the cat sat on the mat. " * 200)
    (folder / "held.txt").write_text("the dog lay on the rug. " * 40)
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "expert 2.yaml").write_text(EXPERTS)

    def run(layout: str) -> Path:
        output = folder / f"whole {layout}"
        if not output.exists():
            processes = started(folder, output.name, layout, recipe=recipe_of(layout))
            said = ended(processes)
            assert [each.returncode for each in processes] == [0] * len(processes), said
        return output

    return run


@pytest.mark.long
@pytest.mark.parametrize(("layout", "moment", "number"), KILLS)
def test_a_kill_ends_the_others_and_loses_nothing(
    layout: str, moment: str, number: int, whole: Callable[[str], Path]
) -> None:
    uninterrupted = whole(layout)
    folder, rng = uninterrupted.parent, random.Random(f"{layout} {moment} {number}")
    run = folder / f"cut {layout} {moment} {number}"
    processes = started(folder, run.name, layout, recipe=recipe_of(layout))
    now, lost = come(run, moment, rng), processes[number % len(processes)]
    end = time.monotonic() + 120
    while not now():
        assert time.monotonic() < end
        assert lost.poll() is None, ended(processes)
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.02)
    lost.kill()
    began = time.monotonic()
    others = [each for each in processes if each is not lost]
    for each in others:
        each.wait(60)
    seconds = time.monotonic() - began
    said = ended(processes)
    assert seconds < 5, said
    assert [each.returncode for each in others] == [MachineError.exit_code] * len(others), said
    assert "has lost another one" in said[processes.index(others[0])]
    again = layout if number % 2 == 0 else ELSEWHERE[layout]
    processes = started(folder, run.name, again, recipe=recipe_of(layout))
    said = ended(processes)
    assert [each.returncode for each in processes] == [0] * len(processes), said
    if again == layout:
        assert weights(run) == weights(uninterrupted)
    else:
        one, other = (read_tensors(path / "final" / "model.safetensors") for path in (uninterrupted, run))
        apart = max(float((one[name] - other[name]).abs().max() / one[name].abs().max().clamp(min=1)) for name in one)
        assert apart < 1e-6


@pytest.mark.long
def test_a_full_disk_of_one_process_saves_nothing_and_harms_nothing(whole: Callable[[str], Path]) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    uninterrupted = whole("fsdp 2")
    run = uninterrupted.parent / "full"
    processes = started(run.parent, run.name, "fsdp 2", full=1)
    said = ended(processes)
    assert [each.returncode for each in processes] == [MachineError.exit_code] * 2, said
    assert "another process could not write its part" in said[0]
    assert "nothing was saved" in said[1]
    assert not list((run / "checkpoints").glob("step-*"))
    processes = started(run.parent, run.name, "fsdp 2")
    said = ended(processes)
    assert [each.returncode for each in processes] == [0] * 2, said
    assert weights(run) == weights(uninterrupted)
