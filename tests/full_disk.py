"""A disk that is full, as far as this process can tell: no file may grow beyond a few bytes."""

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def no_room(most: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes.

    Python keeps what it compiled of a module that is first imported meanwhile. It writes that with one call and does
    not look how much of it was written, so that a cut-off file would be left and break every later import.
    """
    before, writes = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes


@cache
def can_mount() -> bool:
    """Say whether a small disk can be mounted here, which needs root."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return bool(shutil.which("unshare")) and not subprocess.run(command, capture_output=True, check=False).returncode
