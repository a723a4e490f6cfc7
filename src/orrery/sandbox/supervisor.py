"""The process outside the namespaces: it makes them, watches time, memory and output, and leaves nothing behind."""

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

from orrery.sandbox import first, kernel

TICK = 0.02
SETTING_UP = 30.0
PAGE = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096


def main() -> None:
    """Run one program: limits, and the numbers of two open files, come as JSON in the arguments.

    The verdict is printed as JSON. Standard input is the parent's lifeline: where it closes, everything ends.
    """
    given = json.loads(sys.argv[1])
    verdict, output = os.pipe(), os.pipe()
    parent, child = _unshared()
    if parent == 0:
        os.close(verdict[0])
        os.close(output[0])
        _start_first(child, given, output[1], verdict[1])
    for handle in (verdict[1], output[1], given["code"], given["exam"]):
        os.close(handle)
    print(json.dumps(Watch(parent, child, verdict[0], output[0], given["limits"]).until_the_end()))


def _unshared() -> tuple[int, Any]:
    """Fork a process into new namespaces whose users are mapped from outside.

    Returns (0, the pipe to its parent) in the new process, (its number, the pipe from it) in the old one.
    """
    up, down = os.pipe(), os.pipe()
    parent = os.fork()
    if parent == 0:
        # A signal to group 0 reaches a whole group, namespaces or not: whoever watches is in another one.
        os.setsid()
        kernel.control(kernel.PARENT_DEATH, signal.SIGKILL)
        try:
            kernel.unshare(kernel.NAMESPACES)
        except OSError as error:
            _fail(up[1], error)
        os.write(up[1], b"unshared\n")
        if os.read(down[0], 1) != b"+":
            os._exit(1)
        return 0, up[1]
    os.close(up[1])
    os.close(down[0])
    said = _line(up[0])
    if said != "unshared":
        _tell_missing(said)
    try:
        _map_users(parent)
    except OSError as error:
        _tell_missing(f"user and group maps: {error.strerror}")
    os.write(down[1], b"+")
    return parent, up[0]


def _map_users(process: int) -> None:
    """Map the namespace's users: nobody, who is the caller; of a caller who is root root too, to make the mounts with.

    Limits on processes do not hold for root, so the program is never root outside either.
    """
    user, group, nobody = os.geteuid(), os.getegid(), first.NOBODY
    if user:
        _write(process, "setgroups", "deny")
        _write(process, "uid_map", f"{nobody} {user} 1")
        _write(process, "gid_map", f"{nobody} {group} 1")
    else:
        _write(process, "uid_map", f"0 0 1\n{nobody} {nobody} 1")
        _write(process, "gid_map", f"0 0 1\n{nobody} {nobody} 1")


def _write(process: int, file: str, content: str) -> None:
    handle = os.open(f"/proc/{process}/{file}", os.O_WRONLY)
    try:
        os.write(handle, content.encode())
    finally:
        os.close(handle)


def _start_first(up: int, given: dict[str, Any], output: int, verdict: int) -> NoReturn:
    """Fork the first process of the PID namespace, tell its number, and wait for its end."""
    process = os.fork()
    if process == 0:
        os.close(up)
        first.run(given["limits"], given["code"], given["exam"], output, verdict)
    os.write(up, f"{process}\n".encode())
    os.closerange(3, 1 << 16)
    os.waitpid(process, 0)
    os._exit(0)


class Watch:
    """What is seen of a running sandbox from outside."""

    def __init__(self, parent: int, pipe: int, verdict: int, output: int, limits: dict[str, Any]) -> None:
        self._parent, self._verdict, self._output, self._limits = parent, verdict, output, limits
        self._first = int(_line(pipe) or 0)
        self._said, self._written = bytearray(), bytearray()
        self._began = 0.0
        self._memory = 0

    def until_the_end(self) -> dict[str, Any]:
        """Return the verdict, once every process in the sandbox has ended."""
        try:
            verdict = self._watched()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._first or self._parent, signal.SIGKILL)
            os.waitpid(self._parent, 0)
        self._take_output()
        seconds = time.monotonic() - self._began if self._began else 0.0
        text = self._written[: self._limits["output"]].decode(errors="replace")
        return {**verdict, "output": text, "seconds": seconds, "memory": self._memory}

    def _watched(self) -> dict[str, Any]:
        started = time.monotonic()
        while True:
            ready, _, _ = select.select([0, self._verdict, self._output], [], [], TICK)
            if 0 in ready and not os.read(0, 1):
                return {"outcome": "killed", "detail": "whoever wanted to know is gone"}
            if self._verdict in ready and (verdict := self._read_verdict()) is not None:
                return verdict
            if self._output in ready and self._take_output() > self._limits["output"]:
                return {"outcome": "output too long", "detail": f"more than {self._limits['output']:,} bytes"}
            if self._began and time.monotonic() - self._began > self._limits["seconds"]:
                return {"outcome": "timed out", "detail": f"after {self._limits['seconds']:g} seconds"}
            if not self._began and time.monotonic() - started > SETTING_UP:
                return {"missing": f"the sandbox is not set up after {SETTING_UP:g} seconds"}
            if self._resident() > self._limits["memory"]:
                return {"outcome": "memory", "detail": f"more than {self._limits['memory'] >> 20:,} MiB in all"}

    def _read_verdict(self) -> dict[str, Any] | None:
        """Return the verdict once there is one; the first process says first that it begins."""
        part = os.read(self._verdict, 1 << 16)
        if not part:
            return {"outcome": "killed", "detail": "the process of the tests ended without a verdict"}
        self._said += part
        *lines, self._said = self._said.split(b"\n")
        for line in map(json.loads, lines):
            if "began" not in line:
                return dict(line)
            self._began = time.monotonic()
        return None

    def _take_output(self) -> int:
        """Read what was written, and return how many bytes there are so far."""
        os.set_blocking(self._output, False)
        with contextlib.suppress(BlockingIOError):
            while len(self._written) <= self._limits["output"] and (part := os.read(self._output, 1 << 16)):
                self._written += part
        return len(self._written)

    def _resident(self) -> int:
        """Return the resident bytes of all processes, from the first down; what they share counts for each."""
        total, waiting = 0, [self._first]
        while waiting:
            process = waiting.pop()
            try:
                with open(f"/proc/{process}/statm", "rb") as file:
                    total += int(file.read().split()[1]) * PAGE
                for thread in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                        waiting += map(int, file.read().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
        self._memory = max(self._memory, total)
        return total


def _line(pipe: int) -> str:
    text = b""
    while not text.endswith(b"\n") and (part := os.read(pipe, 1)):
        text += part
    return text.decode().strip()


def _fail(pipe: int, error: OSError) -> NoReturn:
    os.write(pipe, f"{error.strerror}\n".encode())
    os._exit(1)


def _tell_missing(what: str) -> NoReturn:
    print(json.dumps({"missing": what or "new namespaces"}))
    sys.exit(0)
