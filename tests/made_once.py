"""What several tests read is made once for all workers of a run of pytest."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder or file that ``make`` makes where it is told to; a worker that comes second waits for the first.

    It is for reading: who writes takes a copy.
    """
    root = factory.getbasetemp()
    shared = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "made-once"
    shared.mkdir(exist_ok=True)
    place, whole = shared / name, shared / f"{name}.whole"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():  # a mark beside it, no rename: a run knows the absolute places of what it read
            shutil.rmtree(place, ignore_errors=True)  # of a test that failed
            make(place)
            whole.touch()
    return place
