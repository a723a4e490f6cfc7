"""Files of a task beside a model's weights, which no step of gradients learned: they go where the whole model goes."""

import shutil
from pathlib import Path

from orrery.checkpoints.disk import machine_errors

COUNTS = "counts.safetensors"
RANKER = ("ranker.safetensors", "ranker.json")
BESIDE = (COUNTS, *RANKER)


def beside(folder: Path) -> list[Path]:
    """Return those that a folder has."""
    return [folder / name for name in BESIDE if (folder / name).is_file()]


def copy_beside(folder: Path, into: Path) -> None:
    """Copy those of a folder into another one that the same model was written to, and remove those of a model before.

    Raises:
        MachineError: there is no room.
    """
    if folder.resolve() == into.resolve():
        return
    with machine_errors(into):
        for path in beside(into):
            path.unlink()
        for path in beside(folder):
            shutil.copyfile(path, into / path.name)
