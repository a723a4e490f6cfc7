"""What the kernel keeps a process from that reads a stranger's file: all writing but to one file, and all programs.

Linux has had Landlock since 5.13 (Documentation/userspace-api/landlock.rst); where it is off, or on another system,
nothing is locked.
"""

import ctypes
import os
import struct
from pathlib import Path

from orrery.sandbox import kernel, syscalls

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls, of the same number on every machine."""
_VERSION, _PATH_BENEATH = 1, 1
_WRITE, _TRUNCATE = 1 << 1, 1 << 14
_FIRST = 1 | _WRITE | sum(1 << bit for bit in range(4, 13))
"""Execute, write, remove and make files, folders, links, pipes, sockets and devices; not read."""
_LATER = {2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
"""By the version that brought them: other folders' links and names, truncation, devices' controls."""
_NETWORK, _SCOPES = 0b11, 0b11
"""Binding and connecting (since version 4); abstract sockets and signals of processes outside (since 6)."""


def only_write(target: Path) -> bool:
    """Leave this thread, and all that comes of it, one file to write, no program to execute and no one to signal.

    Makes the file where there is none. Returns whether the kernel did so; system calls that lead out of a process are
    refused besides, where there is a list of them for this machine.
    """
    try:
        locked = _lock(target)
    except (OSError, AttributeError):  # an older kernel, or another system's C library
        locked = False
    try:
        syscalls.install()
    except (OSError, AttributeError, ValueError):
        return locked
    return locked


def _lock(target: Path) -> bool:
    version = _call(_CREATE, None, 0, _VERSION)
    handled = _FIRST | sum(bits for since, bits in _LATER.items() if version >= since)
    words = [handled, *([_NETWORK] if version >= 4 else []), *([_SCOPES] if version >= 6 else [])]
    program = struct.pack(f"={len(words)}Q", *words)
    rules = _call(_CREATE, program, len(program), 0)
    file = os.open(target, os.O_RDONLY | os.O_CREAT)
    try:
        _call(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", handled & (_WRITE | _TRUNCATE), file), 0)
        kernel.control(kernel.NO_NEW_PRIVILEGES, 1)
        _call(_RESTRICT, rules, 0)
    finally:
        os.close(file)
        os.close(rules)
    return True


def _call(number: int, *words: int | bytes | None) -> int:
    """Make a system call. Raises `OSError`."""
    given = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    result = int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *given))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}")
    return result
