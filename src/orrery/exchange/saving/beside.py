"""Files of a task beside a model's weights, which no step of gradients learned: they go where the whole model goes."""

import shutil
from pathlib import Path

COUNTS = "counts.safetensors"
RANKER = ("ranker.safetensors", "ranker.json")
BESIDE = (COUNTS, *RANKER)


def beside(folder: Path) -> list[Path]:
    """Return those that a folder has."""
    return [folder / name for name in BESIDE if (folder / name).is_file()]


def copy_beside(folder: Path, into: Path) -> None:
    """Copy those of a folder into another one that the same model was written to."""
    for path in beside(folder) if folder.resolve() != into.resolve() else ():
        shutil.copyfile(path, into / path.name)
