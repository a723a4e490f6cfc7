"""Every objective on a model whose parameters two processes share (FSDP2) learns what one process learns.

Objectives call the model, and never one of its parts around it: only then do the hooks run that gather parameters.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from orrery.objectives import OBJECTIVES

PROGRAM = Path(__file__).parents[1] / "sharded.py"


def test_every_objective_learns_the_same_under_fsdp() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # Processes of their own: ranks start threads of torch's, and a fork of a warm process has died of that.
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAM],
            env={**os.environ, **common, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    (out, err), (_, other) = (process.communicate(timeout=300) for process in ranks)
    assert [process.returncode for process in ranks] == [0, 0], err + other
    errors = json.loads(out.splitlines()[-1])
    assert {case.partition(" ")[0] for case in errors} >= {"causal", "seq2seq", "verdicts"}
    assert set(OBJECTIVES.names()) <= {case.partition(" ")[0] for case in errors}
    assert max(errors.values()) <= 1e-6, errors
