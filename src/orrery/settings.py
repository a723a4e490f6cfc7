"""The few settings that come from the environment, each read here and nowhere else."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Folder of the named data sets: ``ORRERY_DATA``, by default ``data/`` in the working directory."""
    return Path(os.environ.get("ORRERY_DATA") or "data")


def runs_folder() -> Path:
    """Folder of the training runs: ``ORRERY_RUNS``, by default ``runs/`` in the working directory."""
    return Path(os.environ.get("ORRERY_RUNS") or "runs")
