"""Ways out of the sandbox, made by rule: signals to its own group, sockets, other processes, memory that nobody counts.

Run as a file it tries them all, or those named, as whoever runs it, and prints as JSON the verdicts and how many
processes are left. Each program defines ``f`` so that its test holds only where it got out, or goes on for ever: no
verdict may be ``passed``, and none may be missing.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from orrery.sandbox import Exam, SandboxLimits, check_all, kernel

MIB = 1 << 20
ADOPT = 36
"""Of ``prctl``: processes below this one whose parent ends become its own children, so that none is overlooked."""
LIMITS = SandboxLimits(seconds=0.6, memory=128 * MIB, processes=12, disk=4 * MIB, output=50_000)
GROUPS = {"kill": "os.kill(0, {})", "killpg": "os.killpg(0, {})", "minus": "os.kill(-os.getpgid(1), {})"}
SIGNALS = ("STOP", "KILL", "TERM", "INT", "HUP", "TSTP", "USR1", "ABRT")
FAMILIES = {
    "unspecified": 0, "ax25": 3, "ipx": 4, "netlink": 16, "packet": 17, "key": 15, "pppox": 24, "can": 29, "tipc": 30,
    "bluetooth": 31, "nfc": 39, "alg": 38, "vsock": 40, "kcm": 41, "qipcrtr": 42, "smc": 43, "xdp": 44, "mctp": 45,
}  # fmt: skip
ENDLESS = "while True: pass\n"
ESCAPED = "def f(x): return 41\n"

# A child that leaves the group burns on where whoever watches is stopped by the signal.
_BURNING = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\n"
_SOCKET = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
opened = [kind for kind in (1, 2, 3, 5) if libc.{call} >= 0]
if not opened: raise PermissionError('no socket')
"""


def escapes() -> dict[str, str]:
    """Return the programs by name."""
    programs = {}
    for name in SIGNALS:
        number = signal.Signals[f"SIG{name}"].value
        for way, call in GROUPS.items():
            programs[f"{way} {name}"] = f"{_BURNING}{call.format(number)}\n{ENDLESS}"
        programs[f"tests {name}"] = (
            f"import os\ndef f(x):\n    for _ in range(9): os.kill(1, {number})\n    os._exit(0)"
        )
    for name, family in FAMILIES.items():
        programs[f"socket {name}"] = _SOCKET.format(call=f"socket({family}, kind, 0)") + ESCAPED
    programs["socket pair tipc"] = (
        "import ctypes\npair = (ctypes.c_int * 2)()\n"
        "if ctypes.CDLL(None).socketpair(30, 5, 0, pair): raise PermissionError\n" + ESCAPED
    )
    programs["socket high bits"] = (  # the kernel reads 32 bits of the family, and so must who looks at it
        "import ctypes\nif ctypes.CDLL(None).syscall(ctypes.c_long(41), ctypes.c_long((1 << 32) | 40), 1, 0) < 0:\n"
        "    raise PermissionError\n" + ESCAPED
    )
    programs["limits of the tests"] = "import resource\nresource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\n" + ESCAPED
    programs["group of the tests"] = "import os\nos.setpgid(0, 1)\n" + ESCAPED
    programs["a signal of real time"] = "import os\nos.kill(0, 40)\n" + ENDLESS
    programs["signals by a file's owner"] = (
        "import fcntl, os, signal\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, -os.getpgrp() or -1)\n"
        f"fcntl.fcntl(r, 10, {signal.SIGKILL.value})\n"
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)\nos.write(w, b'x')\n" + ENDLESS
    )
    return programs


def left() -> list[int]:
    """Return the processes below this one that do not end within three seconds."""
    until = time.monotonic() + 3
    while (children := below(os.getpid())) and time.monotonic() < until:
        time.sleep(0.05)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            continue
    return children


def below(process: int) -> list[int]:
    """Return the numbers of all processes that come from one."""
    try:
        threads = list(Path(f"/proc/{process}/task").glob("*/children"))
        children = [int(child) for thread in threads for child in thread.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [other for child in children for other in below(child)]


def main() -> None:
    """Try all, or those named, and print what became of each."""
    kernel.control(ADOPT, 1)
    chosen = escapes()
    names = sys.argv[1:] or list(chosen)
    verdicts = check_all([Exam(chosen[name], "assert f(20) == 41", ("f",)) for name in names], LIMITS, workers=4)
    by_name = {name: [one.outcome, one.detail, one.seconds] for name, one in zip(names, verdicts, strict=True)}
    print(json.dumps({"user": os.getuid(), "verdicts": by_name, "left": len(left())}))


if __name__ == "__main__":
    main()
