"""The filter of system calls (seccomp): what no test program needs and what gets around the other limits is refused."""

import ctypes
import errno
import os
import struct

from orrery.sandbox import kernel

# By machine: audit's number of the architecture, and system calls by number (arch/*/ of the kernel's source).
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED: dict[str, tuple[int, int]] = {
    # the memory of other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # memory that no limit counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    # another view of the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    # parts of the kernel that have been a way out of sandboxes
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "acct": (163, 89), "reboot": (169, 142),
    "syslog": (103, 116), "swapon": (167, 224),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
# What may stand as the first argument, 32 bits of it, as the kernel reads them.
ONLY: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    # AF_UNIX, AF_INET, AF_INET6, which a network namespace parts; AF_VSOCK leads to the host of a virtual machine
    "socket": ((41, 198), (1, 2, 10)), "socketpair": ((53, 199), (1,)),
    # its own limits, not those of its tests
    "prlimit64": ((302, 261), (0,)),
}  # fmt: skip

_LOAD, _EQUAL, _ANY, _ATLEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000


def install() -> None:
    """Refuse those system calls to this process and all that come from it. Raises `OSError`."""
    program = filter_of(os.uname().machine)
    content = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(content))
    holder = ctypes.create_string_buffer(head, len(head))
    kernel.control(kernel.NO_NEW_PRIVILEGES, 1)
    kernel.control(kernel.SECCOMP, 2, ctypes.addressof(holder))


def filter_of(machine: str) -> bytes:
    """Return the program (classic BPF) for ``x86_64`` or ``aarch64``.

    A process of another architecture, or of x32, is killed; ``clone`` with a new namespace is refused, and so is what
    `ONLY` does not allow; ``clone3``, whose arguments no filter can see, does not exist, so that the C library uses
    ``clone``.
    """
    column = list(MACHINES).index(machine)
    lines = [
        _line(_LOAD, _MACHINE), _line(_EQUAL, MACHINES[machine], 1, 0), _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER), _line(_ATLEAST, _X32, 0, 1), _line(_RETURN, _KILL),
        _line(_EQUAL, CLONE3[column], 0, 1), _line(_RETURN, _ERROR | errno.ENOSYS),
    ]  # fmt: skip
    for numbers in REFUSED.values():
        lines += [_line(_EQUAL, numbers[column], 0, 1), _line(_RETURN, _ERROR | errno.EPERM)]
    for numbers, allowed in ONLY.values():
        lines += [_line(_EQUAL, numbers[column], 0, len(allowed) + 3), _line(_LOAD, _FIRST_ARGUMENT)]
        lines += [_line(_EQUAL, value, len(allowed) - place, 0) for place, value in enumerate(allowed)]
        lines += [_line(_RETURN, _ERROR | errno.EPERM), _line(_RETURN, _ALLOW)]
    namespaces = kernel.NAMESPACES
    lines += [
        _line(_EQUAL, CLONE[column], 0, 3), _line(_LOAD, _FIRST_ARGUMENT), _line(_ANY, namespaces, 0, 1),
        _line(_RETURN, _ERROR | errno.EPERM), _line(_RETURN, _ALLOW),
    ]  # fmt: skip
    return b"".join(lines)


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)
