"""The only files that generated code sees: Python's library and the machine's shared libraries, read-only."""

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from orrery.sandbox import kernel

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/etc/ld.so.cache")
DEVICES = ("null", "zero", "full", "random", "urandom")
WORK = "/sandbox"
"""The only folder that can be written to."""
TEMPORARY = os.path.join(os.sep, "tmp")
"""A folder that every machine has, so that the new root can be put together over it."""

PACKAGES = ("site-packages", "dist-packages")
PYTHON = os.path.realpath(sys.executable)
FILES = 4096
"""Files and folders that it holds at most."""


def build(disk: int) -> None:
    """Make a new root for this process, which has namespaces of its own, and go into a folder of ``disk`` bytes.

    Installed packages are hidden. Nothing is written to the machine's disks: all new files are in memory, and go with
    the last process. Raises `OSError`.
    """
    shown, library = visible(), sysconfig.get_path("stdlib")  # both are found in files that go with the old root
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("tmpfs", TEMPORARY, "tmpfs", kernel.NO_SUID | kernel.NO_DEVICES, "size=1m,nr_inodes=4096,mode=755")
    os.mkdir(f"{TEMPORARY}/.machine")
    kernel.pivot_root(TEMPORARY, f"{TEMPORARY}/.machine")
    os.chdir("/")
    for path in shown:
        _show(path, library)
    for name in DEVICES:
        _place(f"/dev/{name}", folder=False)
        kernel.mount(f"/.machine/dev/{name}", f"/dev/{name}", flags=kernel.BIND)
    os.mkdir(WORK)
    if not os.path.exists(TEMPORARY):  # Python itself may lie there
        os.symlink(WORK, TEMPORARY)
    closed = kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXECUTION
    kernel.mount("tmpfs", WORK, "tmpfs", closed, f"size={disk},nr_inodes={FILES},mode=1777")
    kernel.unmount("/.machine")
    os.rmdir("/.machine")
    kernel.mount("", "/", flags=kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_DEVICES)
    os.chdir(WORK)


def visible() -> list[str]:
    """Return the files and folders of the machine that are shown, none inside another."""
    names = {sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"), sysconfig.get_config_var("LIBDIR")}
    names |= {PYTHON, *SYSTEM}
    shown_paths = sorted({str(name) for name in names if name})
    return [path for path in shown_paths if not any(path.startswith(f"{other}/") for other in shown_paths)]


def _show(path: str, library: str) -> None:
    """Show one path of the machine, links as links."""
    source = f"/.machine{path}"
    if os.path.islink(source):
        _place(os.path.dirname(path), folder=True)
        os.symlink(os.readlink(source), path)
        return
    if not os.path.exists(source):
        return
    _place(path, folder=os.path.isdir(source))
    kernel.bind(source, path)
    for folder in _packages(path, library):
        kernel.mount("tmpfs", folder, "tmpfs", kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_DEVICES, "size=4k")


def _packages(path: str, library: str) -> Iterator[str]:
    """Yield the folders of installed packages in what is shown."""
    for folder in (path, *(str(sub) for sub in sorted(Path(path).glob("python*"))), library):
        for name in PACKAGES:
            place = os.path.join(folder, name)
            if place.startswith(f"{path}/") and os.path.isdir(place) and not os.path.ismount(place):
                yield place


def _place(path: str, *, folder: bool) -> None:
    """Make an empty folder, or an empty file, for a mount."""
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
