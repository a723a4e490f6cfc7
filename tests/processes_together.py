"""Programs of several processes, which say as JSON what they found."""

import json
import os
import subprocess
import sys
from typing import Any

from orrery.laws.ranks import free_port


def told(*words: str, world: int = 2, patience: int = 300) -> Any:
    """Start a program of several processes, and return what the first one says."""
    port = free_port()
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
    said = [process.communicate(timeout=patience) for process in ranks]
    assert [process.returncode for process in ranks] == [0] * world, "".join(err for _, err in said)
    return json.loads(said[0][0].splitlines()[-1])
