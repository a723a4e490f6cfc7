"""Durable file operations: bytes reach the disk before names do, and a full disk is a clear error."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orrery.errors import MachineError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_RIGHTS = {errno.EACCES, errno.EPERM, errno.EROFS}


def fsync_file(path: Path) -> None:
    """Wait until the bytes of ``path`` are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_folder(path: Path) -> None:
    """Wait until the names inside ``path`` are on the disk; Windows has no such call and needs none."""
    if os.name == "posix":
        fsync_file(path)


def replace(source: Path, target: Path) -> None:
    """Give ``source`` the name ``target`` in one step."""
    os.replace(source, target)


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it; what is already gone is fine."""
    shutil.rmtree(path, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` so that a reader or a crash sees the old or the new file, no part."""
    fresh = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fsync_file(fresh)
        replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    fsync_folder(path.parent)


def free_bytes(path: Path) -> int:
    """Bytes that a user without special rights can still write below ``path``, an existing folder."""
    return shutil.disk_usage(path).free


@contextmanager
def machine_errors(path: Path, needed: int = 0) -> Iterator[None]:
    """Turn a disk's refusals into ``MachineError``: no room (with the bytes), no rights, broken."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room(path, needed) from error
        if error.errno in NO_RIGHTS:
            message = f"cannot write in {path}: {error.strerror}"
            raise MachineError(message, "choose a folder with write permission, with --output") from error
        if error.errno == errno.EIO:
            raise MachineError(f"the disk failed at {path}: {error.strerror}", "check the disk") from error
        raise


def no_room(path: Path, needed: int) -> MachineError:
    """Return the error of a disk, quota or file-size limit too small for ``needed`` bytes at ``path``."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    message = f"no room to write {path}: {needed:,} bytes needed, {free_bytes(existing):,} free"
    return MachineError(message, "free some space, raise the file-size limit, or lower checkpoints.keep")
