"""Programs in, verdicts out: each runs in a sandbox of its own, which is gone when its verdict is there."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import orrery
from orrery.errors import MachineError, UsageError
from orrery.sandbox import kernel
from orrery.sandbox.filesystem import WORK
from orrery.sandbox.verdict import Exam, SandboxLimits, Verdict

LIMITS = SandboxLimits()
LATE = 60.0
"""Seconds that a sandbox may take beyond its program's, to be made and taken apart on a busy machine."""
LAYERS = "namespaces(user,pid,net,mount,ipc,uts,cgroup),seccomp,rlimits,no-new-privileges"
_MACHINES = ("x86_64", "aarch64")
_KERNEL = (5, 14)
_START = "import sys; sys.path.insert(0, {!r}); from orrery.sandbox.supervisor import main; main()"
_HINT = (
    "run this on Linux 5.14 or later where user namespaces are allowed: sysctl user.max_user_namespaces and "
    "kernel.apparmor_restrict_unprivileged_userns, in Docker a seccomp profile with unshare, mount and pivot_root"
)


def check(exam: Exam, limits: SandboxLimits = LIMITS) -> Verdict:
    """Run a program and its tests in a sandbox.

    The program is a process without network, without files but Python's library and an empty folder in memory, in
    namespaces of its own, with no rights and bounded time, memory, processes, files and output. Its tests run in
    another process, which the program can neither read, trace, signal nor answer for: an answer is a plain value.

    Raises:
        MachineError: this machine cannot isolate it; nothing was run.
        UsageError: a limit that is no limit.
    """
    _refuse_limits(limits)
    isolation()
    return _run(exam, limits)


def check_all(
    exams: Sequence[Exam],
    limits: SandboxLimits = LIMITS,
    *,
    workers: int | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Verdict]:
    """Run several programs, ``workers`` at once (by default one for each processor), each alone as in `check`."""
    _refuse_limits(limits)
    isolation()
    verdicts: dict[int, Verdict] = {}
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(_run, exam, limits): place for place, exam in enumerate(exams)}
        try:
            for ended in as_completed(waiting):
                verdicts[waiting[ended]] = ended.result()
                if done is not None:
                    done(len(verdicts))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [verdicts[place] for place in range(len(exams))]


@cache
def isolation() -> str:
    """Return what keeps programs apart on this machine, after a trial; all of it or nothing is run.

    Raises:
        MachineError: something of it is missing, by name.
    """
    here = os.uname() if hasattr(os, "uname") else None
    if here is None or here.sysname != "Linux":
        system = here.sysname if here is not None else sys.platform
        raise MachineError(f"generated code is not run here: {system} has no namespaces to keep it apart", _HINT)
    if here.machine not in _MACHINES:
        raise MachineError(f"generated code is not run here: no filter of system calls for {here.machine}", _HINT)
    release = tuple(int(part) for part in here.release.split("-")[0].split(".")[:2])
    if release < _KERNEL:
        raise MachineError(f"generated code is not run here: Linux {here.release} counts processes by user only", _HINT)
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        raise MachineError("generated code is not run here: /proc shows no children of processes", _HINT)
    trial = _run(Exam("def one():\n    return 1\n", "assert one() == 1", ("one",)), SandboxLimits(seconds=30))
    if not trial.passed:
        raise MachineError(f"generated code is not run here: a trial {trial.outcome}: {trial.detail}", _HINT)
    return LAYERS


def _refuse_limits(limits: SandboxLimits) -> None:
    for name, value in asdict(limits).items():
        if not 0 < value < float("inf"):
            raise UsageError(f"a limit of {value:g} {name}", "give a number above 0")


def _run(exam: Exam, limits: SandboxLimits) -> Verdict:
    """Run one program. Raises `MachineError` where the sandbox cannot be set up."""
    # Surrogates come from what models write; code with them is no program, and Python says so.
    code = exam.code.encode("utf-8", "backslashreplace")
    questions = json.dumps({"tests": exam.tests, "names": exam.names}).encode()
    source = str(Path(orrery.__file__).parents[1])
    with tempfile.TemporaryFile() as program, tempfile.TemporaryFile() as tests:
        for file, content in ((program, code), (tests, questions)):
            file.write(content)
            file.flush()
        given = {"limits": asdict(limits), "code": program.fileno(), "exam": tests.fileno()}
        files = (program.fileno(), tests.fileno())
        verdict = _supervised(_START.format(source), json.dumps(given), files, limits.seconds + LATE)
    if "missing" in verdict:
        raise MachineError(f"generated code is not run here: {verdict['missing']}", _HINT)
    return Verdict(**verdict)


def _supervised(start: str, given: str, files: tuple[int, ...], seconds: float) -> dict[str, Any]:
    """Start the supervisor without the user's environment and outside the terminal's group, and wait for it.

    One that is not done after ``seconds`` is killed, and all that it watches ends with it.
    """
    # The environment of the supervisor is that of the program: nothing of the user's, no keys.
    environment = {"PATH": "/nowhere", "HOME": WORK, "TMPDIR": WORK, "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", start, given],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment, cwd="/", pass_fds=files, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        late = threading.Timer(seconds, process.kill)
        late.start()
        try:
            said, errors = process.stdout.read(), process.stderr.read()
        except BaseException:
            process.kill()
            raise
        finally:
            late.cancel()
    if process.returncode < 0:  # by the kernel's hunt for memory, for one; the programs beside it go on
        name = kernel.signal_name(-process.returncode)
        return {"outcome": "killed", "detail": f"what watches the program was ended by signal {name}"}
    if process.returncode or not said:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no word of it"])[-1]
        raise MachineError(f"the sandbox failed: {last}", _HINT)
    return dict(json.loads(said))
