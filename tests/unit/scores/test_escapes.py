"""Ways out of the sandbox, as root and as an ordinary user: each stopped and reported, and no process left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from orrery.errors import MachineError
from orrery.sandbox import Exam, SandboxLimits, check, isolation, run
from unit.scores import escapes

try:
    isolation()
except MachineError as missing:  # a container without user namespaces cannot run generated code, and says so
    pytest.skip(str(missing), allow_module_level=True)

FOLDER = Path(__file__).parent
NAMES = sorted(escapes.escapes())
# What differs in kind: the group's signals, the shield of the tests, the family of a socket, the limits of others.
FEW = ["kill STOP", "killpg KILL", "kill TERM", "tests INT", "socket vsock", "socket netlink", "limits of the tests"]


def unused_user() -> int:
    """Return the number of a user of whom no process is."""
    taken = {entry.stat().st_uid for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return next(number for number in range(61000 + os.getpid() % 999, 65000) if number not in taken)


def tried(user: str, names: list[str]) -> dict[str, Any]:
    """Return what became of these escapes, tried by root or by an ordinary user."""
    command = [str(FOLDER / "escapes.py"), *names]
    if user == "root" and os.geteuid():
        pytest.skip("not started by root")
    if user == "ordinary" and not os.geteuid():
        command = [str(FOLDER / "as_user.py"), str(unused_user()), *command]
    said = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, cwd="/")
    assert said.returncode == 0, said.stderr
    answered = dict(json.loads(said.stdout))
    assert (answered["user"] == 0) == (user == "root")
    return answered


def held(answered: dict[str, Any], names: list[str]) -> None:
    """Hold that every escape has a verdict, none passed or went on, and none left a process."""
    assert list(answered["verdicts"]) == names
    for name, (outcome, detail, seconds) in answered["verdicts"].items():
        assert outcome in {"failed", "killed", "timed out"}, name
        assert detail, name
        assert seconds < escapes.LIMITS.seconds + 2, name
    assert answered["left"] == 0


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_escapes_of_each_kind_are_stopped(user: str) -> None:
    held(tried(user, FEW), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_every_escape_is_stopped(user: str) -> None:
    assert len(NAMES) >= 50
    held(tried(user, NAMES), NAMES)


def supervisors() -> list[int]:
    """Return the supervisors below this process."""
    lines = {process: Path(f"/proc/{process}/cmdline").read_text() for process in escapes.below(os.getpid())}
    return [process for process, line in lines.items() if "sandbox.supervisor" in line]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_supervisor_that_is_gone_or_stopped_is_a_verdict(
    end: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for one program does not wait for ever, and the programs beside it are not lost."""
    monkeypatch.setattr(run, "LATE", 0.5)
    kill = subprocess.Popen(
        [sys.executable, "-c", f"""
import os, time
from pathlib import Path
from unit.scores.escapes import below
while True:
    for one in below({os.getpid()}):
        try:
            line = Path(f"/proc/{{one}}/cmdline").read_text()
        except OSError:
            continue
        if "sandbox.supervisor" in line and len(below(one)) >= 3:
            os.kill(one, {int(end)})
            raise SystemExit
    time.sleep(0.02)
"""],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    began = time.monotonic()
    verdict = check(Exam("while True: pass", "f(1)"), SandboxLimits(seconds=3))
    assert kill.wait(10) == 0
    assert (verdict.outcome, verdict.detail) == ("killed", "what watches the program was ended by signal SIGKILL")
    assert time.monotonic() - began < 20
    assert not supervisors()


def test_what_the_tests_print_is_output_and_no_verdict() -> None:
    for tests in ("print('told')\nassert f(1) == 2", "import os\nos.write(1, b'told\\n')\nassert f(1) == 2"):
        verdict = check(Exam("def f(x): return 2", tests, ("f",)), SandboxLimits(seconds=5))
        assert (verdict.outcome, verdict.output) == ("passed", "told\n")
    verdict = check(Exam("def f(x): return 2", "print(input())", ("f",)), SandboxLimits(seconds=5))
    assert verdict.outcome == "failed"
    assert "EOFError" in verdict.detail


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    verdict = check(Exam("import os\nos.kill(os.getpid(), 40)", "f(1)"), SandboxLimits(seconds=5))
    assert (verdict.outcome, verdict.detail) == ("killed", "by signal 40")
