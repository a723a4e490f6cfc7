"""The few settings that come from the environment, each read here and nowhere else."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Folder of the named data sets: ``ORRERY_DATA``, by default ``data/`` in the working directory."""
    return Path(os.environ.get("ORRERY_DATA") or "data")


def runs_folder() -> Path:
    """Folder of the training runs: ``ORRERY_RUNS``, by default ``runs/`` in the working directory."""
    return Path(os.environ.get("ORRERY_RUNS") or "runs")


def cache_folder() -> Path:
    """Folder of what can be made again, such as machine code: ``orrery/`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orrery"
