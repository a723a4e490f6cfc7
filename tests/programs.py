"""Python programs that start in 30 milliseconds: forks of one warm process, called as `subprocess` is.

``run([sys.executable, "-m", "orrery", ...])`` does what ``subprocess.run`` does, without the seconds of processor time
that importing torch takes. A start itself (what it imports, how long it takes, its peak of memory, another hash seed,
more threads) is tested by `subprocess`, and so is whatever a wrapper such as ``unshare`` starts.
"""

import atexit
import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, CalledProcessError, CompletedProcess, TimeoutExpired
from types import TracebackType
from typing import IO, Any

__all__ = ["CLOSED", "DEVNULL", "ORRERY", "PIPE", "STDOUT", "Program", "run"]

ORRERY = (sys.executable, "-m", "orrery")
CLOSED = -9
"""A stream that is not there, as a shell's ``>&-`` leaves it."""

READ_AT_START = ("OMP_", "MKL_", "LC_", "LANG", "LD_", "NUMBA_", "PYTHON")
"""Beginnings of variables that are read once, while Python or a library starts."""
READ_LATER = (
    "OMP_WAIT_POLICY",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
)
SETTINGS = {"OMP_NUM_THREADS": "1"}


class Warm:
    """The warm process of this one."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        self.environment = {**os.environ, **SETTINGS}
        for name in READ_LATER:
            self.environment.pop(name, None)
        command = [sys.executable, str(Path(__file__).with_name("warm_process.py")), str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=self.environment, stdin=DEVNULL, stdout=DEVNULL
        )
        theirs.close()
        if self._socket.recv(64) != b"ready":
            raise RuntimeError(f"the warm process ended with code {self._process.wait()}")

    def ask(self, request: Mapping[str, object], streams: Sequence[int] = ()) -> int:
        """Send a request and return the number that answers it."""
        with self._one_at_a_time:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(streams))
            answer = self._socket.recv(64)
        if not answer:
            raise RuntimeError(f"the warm process ended with code {self._process.wait()}")
        return int(answer)

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


@lru_cache(maxsize=1)
def warm() -> Warm:
    """Return the warm process, started when it is first needed."""
    process = Warm()
    atexit.register(process.close)
    return process


class Program:
    """A running program, with the methods of `subprocess.Popen`.

    ``room`` is the largest size of a file that it may write, ``space`` how many bytes of addresses it may take beyond
    what is loaded.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = False,
        errors: str | None = None,
        start_new_session: bool = False,
        room: int | None = None,
        space: int | None = None,
    ) -> None:
        self.args = [str(word) for word in command]
        self.returncode: int | None = None
        if self.args[0] != sys.executable:
            raise ValueError(f"{self.args[0]} is not this Python: subprocess starts other programs")
        self._text = {"encoding": "utf-8", "errors": errors} if text or errors else None
        request = {
            "words": self.args[1:], "folder": str(cwd or os.getcwd()), "environment": _possible(env or os.environ),
            "closed": [place for place, stream in enumerate((stdin, stdout, stderr)) if stream == CLOSED],
            "session": start_new_session, "room": room, "space": space,
        }  # fmt: skip
        with contextlib.ExitStack() as given:
            ours: list[int | None] = [None] * 3
            theirs: list[int] = []
            for place, stream in enumerate((stdin, stdout, stderr)):
                if stream == PIPE:
                    reading, writing = os.pipe()
                    ours[place], handle = (reading, writing) if place else (writing, reading)
                    given.callback(os.close, handle)
                    theirs.append(handle)
                elif stream != CLOSED:
                    theirs.append(_handle(place, stream, theirs, given))
            self.pid = warm().ask(request, theirs)
        self._ended = os.pidfd_open(self.pid)  # it is not waited for before it is asked for: the number is its own
        self.stdin, self.stdout, self.stderr = (self._open(place, handle) for place, handle in enumerate(ours))

    def _open(self, place: int, handle: int | None) -> IO[Any] | None:
        if handle is None:
            return None
        raw: Any = open(handle, "rb" if place else "wb")  # noqa: SIM115 (closed with the program)
        return io.TextIOWrapper(raw, write_through=not place, **self._text) if self._text else raw

    def poll(self) -> int | None:
        """Return the exit code, as `subprocess` has it, or None while it runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, when there is one."""
        code = self._wait(timeout)
        if code is None:
            raise TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _wait(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], seconds)[0]:
            self.returncode = warm().ask({"reap": self.pid})
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Send what it reads, and return what it said, when it has ended."""
        outputs: dict[int, Any] = {}
        end = None if timeout is None else time.monotonic() + timeout
        threads = []
        for place, stream in enumerate((self.stdout, self.stderr)):
            if stream is not None:
                reading = threading.Thread(target=lambda p=place, s=stream: outputs.update({p: s.read()}), daemon=True)
                reading.start()
                threads.append(reading)
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                if input is not None:
                    self.stdin.write(input)
                self.stdin.close()
        for thread in threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise TimeoutExpired(self.args, timeout or 0.0)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        self._close()
        return outputs.get(0), outputs.get(1)

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
        self.wait()


def run(
    command: Sequence[str | Path],
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **how: Any,
) -> CompletedProcess:
    """Run a program to its end, as `subprocess.run` does; with a time-out, what it began ends with it."""
    if capture_output:
        how |= {"stdout": PIPE, "stderr": PIPE}
    if input is not None:
        how["stdin"] = PIPE
    process = Program(command, **how, start_new_session=timeout is not None)
    try:
        out, err = process.communicate(input, timeout)
    finally:
        if timeout is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
    if check and process.returncode:
        raise CalledProcessError(process.returncode, process.args, out, err)
    return CompletedProcess(process.args, process.wait(), out, err)


def _handle(place: int, stream: Any, before: Sequence[int], given: contextlib.ExitStack) -> int:
    """Return what stands for a stream that is ours, another one of the program, nothing, or a file."""
    if stream is None:
        return place
    if stream == STDOUT:
        return before[-1]
    if stream == DEVNULL:
        handle = os.open(os.devnull, os.O_RDWR)
        given.callback(os.close, handle)
        return handle
    return stream if isinstance(stream, int) else int(stream.fileno())


def _possible(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a program; what differs and was read when the warm process started is refused."""
    if environment.get("OMP_NUM_THREADS") not in (None, "1", os.environ.get("OMP_NUM_THREADS")):
        raise ValueError("OMP_NUM_THREADS: a fork has one thread: let subprocess start what has more")
    settings, before = {**environment, **SETTINGS}, warm().environment
    for name in {*settings, *before}:
        if name.startswith(READ_AT_START) and name not in READ_LATER and settings.get(name) != before.get(name):
            raise ValueError(f"{name} is read while a program starts: let subprocess start one")
    return settings
