"""A copy of the project that may be broken: every trial has one, and the project itself is never touched."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from mutation.operators import Mutation
from mutation.records import ROOT

# What stands at the top of a checkout and is no part of it.
_NOT_COPIED = {
    ".venv", ".git", ".mutants", ".make", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
    ".import_linter_cache", "dist", "build", "runs",
}  # fmt: skip


class Checkout:
    """A copy that is brought up to date when it is opened, so that a killed trial leaves nothing broken in it.

    It is locked as long as this process or one that holds ``lock`` lives, the trials of a killed run among them.
    """

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder, self.root = folder, root
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        wanted = set()
        for path in _files(root):
            name = path.relative_to(root)
            wanted.add(name)
            _copy(path, folder / name)
        for path in list(_files(folder)):
            if path.relative_to(folder) not in wanted and "__pycache__" not in path.parts:
                path.unlink()
        # Compiled once, since nothing that a trial runs may write what the next one would read.
        command = [sys.executable, "-m", "compileall", "-q", "src", "tests"]
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})

    def close(self) -> None:
        """Unlock the copy."""
        os.close(self.lock)

    def mutate(self, mutation: Mutation) -> None:
        """Make one change in the copy."""
        target = self._place(mutation)
        target.write_text(mutation.apply(target.read_text(encoding="utf-8")), encoding="utf-8")
        # Of another second than the sound file, or what was compiled of that would still be taken.
        os.utime(target, (1, 1))

    def mend(self, mutation: Mutation) -> None:
        """Take the change back."""
        target = self._place(mutation)
        shutil.copy2(self.root / target.relative_to(self.folder), target)

    def _place(self, mutation: Mutation) -> Path:
        return self.folder / "src" / "orrery" / mutation.file


def _files(root: Path) -> list[Path]:
    within = []
    for folder, names, files in os.walk(root):
        if Path(folder) == root:
            names[:] = [name for name in names if name not in _NOT_COPIED]
        within += [Path(folder) / file for file in files if (Path(folder) / file).is_file()]
    return within


def _copy(source: Path, target: Path) -> None:
    """Copy a file where the copy is not the same already, by its time and size."""
    there, here = source.stat(), target.stat() if target.exists() else None
    if here is None or (there.st_mtime_ns, there.st_size) != (here.st_mtime_ns, here.st_size):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
