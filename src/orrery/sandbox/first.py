"""The first process of the sandbox's namespaces: it starts the program, runs the tests, and says how they ended.

The kernel lets nothing in a PID namespace end its first process, and ends all others with it.
"""

import contextlib
import io
import json
import os
import resource
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from orrery.sandbox import filesystem, kernel, program, syscalls, tests

NOBODY = 65534
GRACE = 0.5
"""Seconds that a program which closed its channel has to end by itself, so that its status is known."""


def run(limits: dict[str, Any], code: int, exam: int, output: int, verdict: int) -> NoReturn:
    """Close everything off, run the program and its tests, and write one line of JSON into ``verdict``.

    Args:
        limits: `orrery.sandbox.verdict.SandboxLimits` as a dict.
        code: the file of the program.
        exam: the file of the tests and names, as JSON; read only once the program is a process of its own.
        output: where the program writes.
        verdict: where the verdict goes.
    """
    os.setsid()
    # The kernel shields the first process from signals that it does not handle, and Python handles this one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        filesystem.build(limits["disk"])
        _close_off(limits)
    except OSError as error:
        _say(verdict, {"missing": str(error)})
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        _become_the_program(theirs.detach(), code, output)
    theirs.close()
    _speak_to(output)
    for handle in (code, output):
        os.close(handle)
    kernel.control(kernel.DUMPABLE, 0)
    os.write(verdict, b'{"began": true}\n')
    _say(verdict, _examined(ours.fileno(), exam, child))


def _close_off(limits: dict[str, Any]) -> None:
    """Set the limits, give up all rights, and refuse what gets around them."""
    sizes = {
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_NPROC: limits["processes"] + 1,
        resource.RLIMIT_NOFILE: limits["files"],
        resource.RLIMIT_FSIZE: limits["disk"],
        resource.RLIMIT_CPU: int(limits["seconds"]) + 1,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    for name, size in sizes.items():
        # A shell's own lower limit stays.
        most = resource.getrlimit(name)[1]
        size = size if most == resource.RLIM_INFINITY else min(size, most)
        resource.setrlimit(name, (size, size))
    socket.sethostname("sandbox")
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    kernel.drop_capabilities()
    syscalls.install()
    kernel.control(kernel.PARENT_DEATH, signal.SIGKILL)  # a change of rights takes this back, so it comes last


def _become_the_program(channel: int, code: int, output: int) -> NoReturn:
    """Keep the channel, the code and the output alone, in a session and a group of its own, and run the code."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    source = os.pread(code, os.fstat(code).st_size, 0).decode()
    _speak_to(output)
    os.dup2(channel, 3)
    os.closerange(4, 1 << 16)
    sys.executable = filesystem.PYTHON
    try:
        program.Program(3).serve(source)
    except EOFError:
        os._exit(0)
    finally:
        os._exit(1)


def _speak_to(output: int) -> None:
    """Read nothing from now on and write to ``output``: the process that watches keeps its own for the verdict."""
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Whoever is killed flushes nothing, so nothing waits to be flushed.
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "wb"), "utf-8", "backslashreplace", write_through=True) for number in (1, 2)
    )


def _examined(channel: int, exam: int, child: int) -> dict[str, Any]:
    """Return what the tests find."""
    exam_content = json.loads(os.pread(exam, os.fstat(exam).st_size, 0))
    try:
        tests.examine(channel, exam_content["tests"], tuple(exam_content["names"]))
    except tests.Gone as gone:
        return _ended(child, str(gone))
    except tests.Exit as error:
        return {"outcome": "failed", "detail": f"{tests.described(error)}: the program ended before its tests"}
    except MemoryError as error:
        return {"outcome": "memory", "detail": tests.described(error)}
    except BaseException as error:  # whatever tests can raise is a test that does not hold
        return {"outcome": "failed", "detail": tests.described(error)}
    return {"outcome": "passed", "detail": ""}


def _ended(child: int, how: str) -> dict[str, Any]:
    """Return how a program ended that gives no answer any more."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            process, status = os.waitpid(child, os.WNOHANG)
            if not process:
                time.sleep(0.01)
                continue
            if os.WIFSIGNALED(status):
                number = os.WTERMSIG(status)
                if number == signal.SIGXCPU:
                    return {"outcome": "timed out", "detail": "its time of the processor is used up"}
                return {"outcome": "killed", "detail": f"by signal {kernel.signal_name(number)}"}
            code = os.WEXITSTATUS(status)
            return {"outcome": "failed", "detail": f"the program ended before its tests (exit {code})"}
        break
    return {"outcome": "failed", "detail": f"the program broke off the conversation with its tests ({how})"}


def _say(verdict: int, answer: dict[str, Any]) -> NoReturn:
    os.write(verdict, json.dumps(answer).encode() + b"\n")
    os._exit(0)
