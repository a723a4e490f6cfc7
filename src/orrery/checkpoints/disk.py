"""Durable file operations: bytes reach the disk before names do, and a full disk is a clear error."""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orrery.errors import MachineError, UsageError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MORE_ROOM = "free some space, or raise the file-size limit"
NO_RIGHTS = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_PATH = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP,
    errno.EINVAL, errno.EBUSY, errno.ENXIO, errno.ENODEV, errno.EXDEV, errno.ETXTBSY, errno.EOPNOTSUPP,
}  # fmt: skip
_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of renameat2(2)."""


REMOTE = {"s3:", "s3a:", "gs:", "gcs:", "az:", "abfs:", "abfss:", "hdfs:", "http:", "https:"}


def refuse_remote(path: Path) -> None:
    """Refuse the address of something that is no disk, of which a folder of this name would be made here.

    Raises:
        UsageError: it is one.
    """
    if scheme := next((part for part in path.parts if part in REMOTE), None):
        message = f"{path} is an address ({scheme}//), and files are read and written on disks alone"
        raise UsageError(message, "mount it as a folder, or copy it here first, and give the path")


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


def fsync_tree(path: Path) -> None:
    """Wait until a file, or a folder with all in it, is on the disk."""
    if not path.is_dir():
        fsync_file(path)
        return
    for folder, _, names in os.walk(path):
        for name in names:
            fsync_file(Path(folder, name))
        fsync_folder(Path(folder))


def replace(source: Path, target: Path) -> None:
    """Give ``source`` the name ``target`` in one step."""
    os.replace(source, target)


def exchange(one: Path, other: Path, between: Path) -> None:
    """Let two paths change their places: in one step where the system can, else by way of the path ``between``."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    remove(between)
    os.rename(other, between)
    os.rename(one, other)
    os.rename(between, one)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
def machine_errors(path: Path, needed: int = 0, hint: str = MORE_ROOM) -> Iterator[None]:
    """Turn the refusals of a disk at ``path`` into errors that say what to do.

    Raises:
        MachineError: no room (with the bytes), no rights, broken.
        UsageError: a path that cannot be: below a file, too long, a link to itself, in a place that takes no files.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room(path, needed, hint) from error
        if not _is_about(error, path):
            raise
        if error.errno in NO_RIGHTS:
            message = f"cannot write in {path}: {error.strerror}"
            raise MachineError(message, "choose a folder with write permission") from error
        if error.errno == errno.EIO:
            raise MachineError(f"the disk failed at {path}: {error.strerror}", "check the disk") from error
        if error.errno in NO_PATH and error.filename is not None:
            raise UsageError(f"cannot write {path}: {error.strerror}", "choose another name or folder") from error
        raise


def _is_about(error: OSError, path: Path) -> bool:
    """Say whether an error may come from writing at ``path``: it names no file, or one on the way there or below."""
    if not isinstance(error.filename, str | bytes):
        return True
    named, place = Path(os.path.realpath(os.fsdecode(error.filename))), Path(os.path.realpath(path))
    return place.parent == named.parent or named.is_relative_to(place) or place.is_relative_to(named)


def no_room(path: Path, needed: int, hint: str = MORE_ROOM) -> MachineError:
    """Return the error of a disk, quota or file-size limit too small for ``needed`` bytes at ``path``, 0 if unknown."""
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    room = (
        f"{needed:,} bytes needed, {free_bytes(existing):,} free" if needed else f"{free_bytes(existing):,} bytes free"
    )
    return MachineError(f"no room to write {path}: {room}", hint)
