"""A run that replaces another: the old one stays whole under its name until the new one can stand in its place.

The new run is written into a folder of its own inside the old one's. When it has its first checkpoint it is renamed in
one step, which decides the matter; what follows can be done again by anybody: the old entries move away, the new ones
come to their places, the old ones are removed. A process killed before leaves the old run, one killed after leaves
the new one, and `settle` ends what was begun.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from orrery.checkpoints.disk import fsync_folder, fsync_tree, remove, write_text
from orrery.checkpoints.json_file import read_json, refuse
from orrery.checkpoints.lock import folder_lock
from orrery.errors import MachineError

NEW, DECIDED, LEAVING, LEFT = ".orrery-new", ".orrery-decided", ".orrery-leaving", ".orrery-left"
REPLACES = ".orrery-replaces"


def begin(folder: Path) -> Path:
    """Return the empty folder for a run that is to replace the one in ``folder``."""
    remove(folder / NEW)
    (folder / NEW).mkdir()
    return folder / NEW


def take_over(folder: Path, names: Iterable[str]) -> None:
    """Put the new run into the place of the entries ``names`` of the folder."""
    write_text(folder / NEW / REPLACES, json.dumps({"names": list(names)}))
    fsync_tree(folder / NEW)
    os.rename(folder / NEW, folder / DECIDED)
    fsync_folder(folder)
    settle(folder)


def settle(folder: Path) -> None:
    """End a replacement that was decided, and remove what one that was not left behind; needs the folder's lock.

    A folder may come from a stranger, and reading a model settles it: nothing outside the folder is ever touched.

    Raises:
        ModelFileError: the list of what is replaced is not one that a run writes.
    """
    decided, leaving, left = folder / DECIDED, folder / LEAVING, folder / LEFT
    for link in (decided, leaving, left):
        if link.is_symlink():
            link.unlink()
    remove(folder / NEW)
    if decided.is_dir():
        if not left.exists():
            names = _replaced(decided / REPLACES)
            leaving.mkdir(exist_ok=True)
            for name in names:
                if os.path.lexists(folder / name):
                    os.rename(folder / name, leaving / name)
            os.rename(leaving, left)
            fsync_folder(folder)
        for entry in sorted(decided.iterdir()):
            if entry.name != REPLACES:
                os.rename(entry, folder / entry.name)
        fsync_folder(folder)
        remove(decided)
    remove(left)


def _replaced(file: Path) -> list[str]:
    """Return the names of the entries that are replaced, each of which stands in the folder itself."""
    names = read_json(file).get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) and _is_plain(name) for name in names):
        refuse(file, "names something other than entries of its folder")
    return names


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def finish(folder: Path) -> None:
    """Before a run is read: end a replacement that a killed training had decided, unless one is at it."""
    if (folder / DECIDED).is_dir() and not (folder / DECIDED).is_symlink():
        with suppress(MachineError), folder_lock(folder):
            settle(folder)
