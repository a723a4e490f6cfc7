"""Two processes that share the parameters of a model (FSDP2) learn what one process learns, in a step and in a run.

Objectives call the model, and never one of its parts around it: only then do the hooks run that gather parameters.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orrery.objectives import OBJECTIVES

HERE = Path(__file__).parents[1]
FEW = "causal|seq2seq|masked bert|captioning|replaced|ppo|distill|few experts|lstm|more gpt2|more t5|optimizer"
"""Runs that differ most: kinds of models, what is written, an own model beside, optimizers; the program has more."""


def told(*words: str, world: int = 2) -> dict[str, float]:
    """Start a program of several processes, and return what the first one says."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # Processes of their own: ranks start threads of torch's, and a fork of a warm process has died of that.
    ranks = [
        subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    said = [process.communicate(timeout=300) for process in ranks]
    assert [process.returncode for process in ranks] == [0] * world, "".join(err for _, err in said)
    errors: dict[str, float] = json.loads(said[0][0].splitlines()[-1])
    return errors


def test_every_objective_learns_the_same_under_fsdp() -> None:
    errors = told(str(HERE / "sharded.py"))
    assert {case.partition(" ")[0] for case in errors} >= {"causal", "seq2seq", "verdicts"}
    assert set(OBJECTIVES.names()) <= {case.partition(" ")[0] for case in errors}
    assert max(errors.values()) <= 1e-6, errors


def test_runs_that_share_their_weights_leave_what_one_process_leaves(tmp_path: Path) -> None:
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), "fsdp=2", f"only={FEW}")
    assert len(errors) > 9, errors
    assert max(errors.values()) <= 1e-9, errors


@pytest.mark.long
@pytest.mark.parametrize("layout", ["data=2", "fsdp=4", "data=2 fsdp=2"])
def test_every_layout_learns_and_saves_the_same(layout: str, tmp_path: Path) -> None:
    degrees = layout.split()
    world = 4 if layout != "data=2" else 2
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), *degrees, "only=causal llama|ppo|mixtral", world=world)
    assert {"causal llama: bytes of files", "ppo llama: bytes of files"} <= errors.keys(), errors
    assert max(errors.values()) <= 1e-9, errors
