"""System calls of Linux that Python 3.11 has no function for, through the C library."""

import ctypes
import os
import signal

NEW_USER, NEW_PID, NEW_NET, NEW_MOUNT = 0x10000000, 0x20000000, 0x40000000, 0x00020000
NEW_UTS, NEW_IPC, NEW_CGROUP = 0x04000000, 0x08000000, 0x02000000
NAMESPACES = NEW_USER | NEW_PID | NEW_NET | NEW_MOUNT | NEW_UTS | NEW_IPC | NEW_CGROUP

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTION, REMOUNT = 1, 2, 4, 8, 32
NO_ACCESS_TIME, NO_FOLDER_ACCESS_TIME, RELATIVE_ACCESS_TIME = 1024, 2048, 1 << 21
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
DETACH = 2

PARENT_DEATH, DUMPABLE, SECCOMP, BOUNDING_DROP, NO_NEW_PRIVILEGES = 1, 4, 22, 24, 38
_CAPABILITIES_VERSION_3 = 0x20080522


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones. Raises `OSError`."""
    _checked("unshare", _libc().unshare(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or change a mount. Raises `OSError`."""
    words = [word.encode() if word else None for word in (source, target, kind)]
    done = _libc().mount(*words, ctypes.c_ulong(flags), options.encode() if options else None)
    _checked(f"mount {target}", done)


def bind(source: str, target: str, flags: int = READ_ONLY | NO_SUID | NO_DEVICES) -> None:
    """Show ``source`` at ``target`` with these flags, and those that the mount has already. Raises `OSError`."""
    mount(source, target, flags=BIND)
    mount("", target, flags=BIND | REMOUNT | flags | _locked(target))


def unmount(target: str) -> None:
    """Take a mount away, at once for whoever looks from now on. Raises `OSError`."""
    _checked(f"umount {target}", _libc().umount2(target.encode(), DETACH))


def pivot_root(new: str, old: str) -> None:
    """Make ``new`` the root, with the root so far at ``old``. Raises `OSError`."""
    number = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
    _checked("pivot_root", _libc().syscall(number, new.encode(), old.encode()))


def control(option: int, *arguments: int) -> None:
    """Call ``prctl``. Raises `OSError`."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(f"prctl {option}", _libc().prctl(option, *padded))


def signal_name(number: int) -> str:
    """Return the name of a signal; those of real time have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def drop_capabilities() -> None:
    """Give up every capability, for this process and for what it executes. Raises `OSError`."""
    for number in range(64):
        try:
            control(BOUNDING_DROP, number)
        except OSError:
            break  # beyond the last capability that this kernel knows
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    _checked("capset", _libc().capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))


def _locked(target: str) -> int:
    """Return the flags that a mount has and that a user namespace may not take away."""
    flags = os.statvfs(target).f_flag
    kept = READ_ONLY | NO_SUID | NO_DEVICES | NO_EXECUTION | NO_ACCESS_TIME | NO_FOLDER_ACCESS_TIME
    # statvfs has its own number for this one (ST_RELATIME).
    return (flags & kept) | (RELATIVE_ACCESS_TIME if flags & 4096 else 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
