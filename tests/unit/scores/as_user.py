"""Becomes an ordinary user, then runs a Python file: ``python as_user.py USER FILE [ARGUMENT ...]``, started by root.

Root's Python often lies where nobody else may go, in root's own folder. In a mount namespace of this process alone
such a folder is covered by one that holds nothing but what is needed; nothing of the machine changes.
"""

import os
import sys
from pathlib import Path

from orrery.sandbox import kernel

EXECUTE_FOR_OTHERS = 0o001


def closed(path: Path) -> Path | None:
    """Return the highest folder of a path that others may not enter."""
    above = reversed(path.parents)
    return next((folder for folder in above if not folder.stat().st_mode & EXECUTE_FOR_OTHERS), None)


def show(paths: set[Path]) -> None:
    """Cover each closed folder by an open one that holds these paths alone. Raises `OSError`."""
    closed_paths = {path: closed(path) for path in paths}
    hidden = {path: folder for path, folder in closed_paths.items() if folder is not None}
    if not hidden:
        return
    kernel.unshare(kernel.NEW_MOUNT)
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    handles = {path: os.open(path, os.O_PATH) for path in hidden}
    for folder in set(hidden.values()):
        kernel.mount("tmpfs", str(folder), "tmpfs", kernel.NO_SUID | kernel.NO_DEVICES, "size=1m,mode=755")
    for path, handle in handles.items():
        path.mkdir(parents=True, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{handle}", str(path), flags=kernel.BIND)


def main() -> None:
    """Show, give up all rights, run."""
    user, *command = int(sys.argv[1]), *sys.argv[2:]
    tests, source = Path(__file__).resolve().parent, Path(kernel.__file__).resolve().parents[3]
    show({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), tests, source})
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.chdir("/")
    os.execv(sys.executable, [sys.executable, *command])


if __name__ == "__main__":
    main()
