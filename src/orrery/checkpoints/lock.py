"""One process per run folder: a lock that the system releases when its holder dies."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orrery.checkpoints.disk import machine_errors, refuse_remote
from orrery.errors import MachineError

NAME = "lock"


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder`` in the block; raise ``MachineError`` naming its holder's process and host.

    The lock is the system's (``flock``), not the file's existence, so a file left by a killed process is no
    lock. Where the block leaves nothing else in the folder, the file goes too, and the folders that were made for it.
    """
    import fcntl  # not on Windows, where configuration and help must still work

    refuse_remote(folder)
    missing = [place for place in (folder, *folder.absolute().parents) if not os.path.lexists(place)]
    with machine_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "an unnamed process"
            message = f"{folder} is in use by {holder}"
            raise MachineError(message, "wait for it, stop it, or choose another folder with --output") from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        try:
            yield
        finally:
            with suppress(OSError):
                if os.listdir(folder) == [NAME]:
                    (folder / NAME).unlink()
                for place in missing:
                    place.rmdir()
    finally:
        os.close(handle)
