"""What generated code tries, and what becomes of it: everything stopped, named, and nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from orrery.errors import MachineError, OrreryError, UsageError
from orrery.sandbox import Exam, SandboxLimits, Verdict, check, check_all, isolation, run
from orrery.sandbox.verdict import MIB

try:
    isolation()
except MachineError as missing:  # a container without user namespaces cannot run generated code, and says so
    pytest.skip(str(missing), allow_module_level=True)

LIMITS = SandboxLimits(seconds=5, memory=256 * MIB, processes=16, disk=8 * MIB, output=100_000)
SHORT = SandboxLimits(seconds=0.6, memory=256 * MIB, processes=16, disk=8 * MIB, output=100_000)
TESTS = "assert f(20) == 41"
ANSWER = "def f(x):\n    return 2 * x + 1\n"
WRONG = "def f(x):\n    return 0\n"
SECRET = "a-secret-of-the-tests-7391"


def asked(code: str, tests: str = TESTS, limits: SandboxLimits = LIMITS) -> Verdict:
    return check(Exam(textwrap.dedent(code), tests, ("f",)), limits)


# name: code, the outcome, what the detail says
ATTACKS: dict[str, tuple[str, str, str]] = {
    # time
    "endless loop": ("while True: pass", "timed out", "after 0.6 seconds"),
    "endless loop in the call": ("def f(x):\n    while True: pass", "timed out", ""),
    "sleeps": ("import time; time.sleep(3600)", "timed out", ""),
    "ignores every signal": (
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass", "timed out", ""),
    "waits for input": ("input()", "failed", "EOFError"),
    "regular expression without an end": ("import re; re.match(r'(a+)+$', 'a' * 64 + 'b')", "timed out", ""),
    # memory
    "10 GB at once": ("x = bytearray(10 << 30)", "memory", "MemoryError"),
    "grows without end": ("x = []\nwhile True: x.append(bytearray(1 << 20))", "memory", "MemoryError|in all"),
    "many processes, each below the limit": (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0: x = bytearray(100 << 20); time.sleep(60)\n"
        "time.sleep(60)", "memory", "256 MiB in all"),
    "memory in unnamed files": ("import os\nwhile True: os.memfd_create('x')", "failed", "PermissionError"),
    "a number with billions of digits": ("x = 10 ** 10 ** 10", "timed out|memory", ""),
    # processes
    "fork bomb": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "timed out|memory|killed", ""),
    "fork bomb that says so": ("import os\nwhile True: os.fork()", "failed|timed out|memory", ""),
    "threads without end": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        "failed", "can't start new thread"),
    "kills its parent": ("import os; os.kill(os.getppid(), 9); print('alive')\n" + WRONG, "failed", "AssertionError"),
    "kills everything": ("import os; os.kill(-1, 9)", "failed|killed", "ProcessLookupError|SIGKILL"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "killed", "SIGKILL"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "killed", "SIGSEGV"),
    # files
    "reads /etc/passwd": ("open('/etc/passwd').read()", "failed", "FileNotFoundError"),
    "reads the user's home": (f"import os; os.listdir({str(Path.home())!r})", "failed", ""),
    "writes outside": ("open('/usr/lib/x', 'w')", "failed", "Read-only file system"),
    "writes into the root": ("open('/x', 'w')", "failed", "Read-only file system"),
    "writes into Python's library": (
        "import json; open(json.__file__, 'a').write('x')", "failed", "Read-only|Permission"),
    "a link to a file outside": (
        "import os; os.symlink('/../../etc/shadow', 'x'); open('x').read()", "failed", "FileNotFoundError"),
    "leaves by links": (
        "import os; os.chdir('/'); print(os.listdir('/../..')); os.chroot('..')", "failed", "Permission"),
    "fills the disk": ("while True: open('x', 'ab').write(b'x' * (1 << 20))", "failed", "OSError"),
    "files without end": ("n = 0\nwhile True: n += 1; open(str(n), 'w').close()", "failed", "No space left"),
    "open files without end": ("x = []\nwhile True: x.append(open('/dev/null'))", "failed", "Too many open files"),
    "looks at other processes": ("import os; os.listdir('/proc')", "failed", "FileNotFoundError"),
    # the network
    "the network": ("import socket; socket.create_connection(('127.0.0.1', 22), 2)", "failed", "OSError|Error"),
    "names of the network": ("import socket; socket.gethostbyname('localhost.example')", "failed", "gaierror"),
    "a request": ("import urllib.request; urllib.request.urlopen('http://10.0.0.1/', timeout=2)", "failed", "URLError"),
    # rights
    "becomes root": ("import os; os.setuid(0)", "failed", "OSError|PermissionError"),
    "other namespaces": (
        "import ctypes, os\nif ctypes.CDLL(None, use_errno=True).unshare(0x10000000): raise PermissionError",
        "failed", "PermissionError"),
    "mounts": (
        "import ctypes\nif ctypes.CDLL(None).mount(b'none', b'/dev', b'proc', 0, None): raise PermissionError",
        "failed", "PermissionError"),
    "more than it may": (
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))", "failed", "ValueError|Permission"),
    "traces the tests": (
        "import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0) < 0: raise PermissionError",
        "failed", "PermissionError"),
    # output
    "output without end": ("while True: print('x' * 1000)", "output too long", "100,000 bytes"),
    "errors without end": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output too long", ""),
    # the verdict
    "ends before its tests": ("import sys; sys.exit(0)", "failed", "SystemExit"),
    "ends in the test": ("import sys\ndef f(x): sys.exit(0)", "failed", "SystemExit"),
    "ends at once": ("import os; os._exit(0)", "failed", "ended before its tests"),
    "ends in the test at once": ("import os\ndef f(x): os._exit(0)", "failed", "ended before its tests"),
    "says that it has passed": (
        "import os\nfor n in range(64):\n    try: os.write(n, b'{\"outcome\": \"passed\"}\\n')\n"
        "    except OSError: pass", "failed", ""),
    "equals everything": (
        "class Yes:\n    def __eq__(self, other): return True\ndef f(x): return Yes()", "failed", "AssertionError"),
    "a number that equals everything": (
        "class Yes(int):\n    def __eq__(self, other): return True\ndef f(x): return Yes(3)",
        "failed", "AssertionError"),
    "another print and assert": (
        "import builtins\nbuiltins.AssertionError = Exception\nbuiltins.abs = lambda x: 41\n" + WRONG,
        "failed", "AssertionError"),
    "another library": ("import math\nmath.isclose = lambda *a: True\n" + WRONG, "failed", "AssertionError"),
    "looks at its callers": (
        "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in list(frame.f_locals.values()):\n"
        "        if 'f(2' + '0)' in str(value): raise KeyError('found')\n    frame = frame.f_back\n" + WRONG,
        "failed", "AssertionError"),
    "talks nonsense": ("import os\ndef f(x): os.write(3, b'\\xff' * 64)", "failed", "broke off"),
    "closes the channel": ("import os\nos.close(3)", "failed", "broke off|ended"),
    "a value of a gigabyte": ("def f(x): return ' ' * (20 << 20)", "failed", "more than 16 MiB"),
    "a list inside itself": ("def f(x):\n    x = []\n    x.append(x)\n    return x", "failed", "RecursionError"),
    # what models write
    "no Python": ("def f(x) return", "failed", "SyntaxError"),
    "nothing": ("", "failed", "NameError"),
    "raises": ("def f(x): raise ValueError('no idea')", "failed", "ValueError: no idea"),
    "no function": ("f = 3", "failed", "TypeError"),
    "a lone surrogate": ("x = '\udc80'", "failed", ""),
    "a NUL": ("x = '\0'", "failed", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_stopped_and_named(name: str) -> None:
    code, outcome, detail = ATTACKS[name]
    limits = SHORT if "timed out" in outcome and "fork" not in name else LIMITS
    if "fork bomb" in name:
        limits = SandboxLimits(seconds=1, memory=256 * MIB, processes=16)
    verdict = asked(code, "import math\nassert math.isclose(f(20), 41)" if name == "another library" else TESTS, limits)
    assert verdict.outcome in outcome.split("|"), verdict
    assert any(part in verdict.detail for part in detail.split("|")), verdict
    assert verdict.seconds < limits.seconds + 2


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # others write in the system's at the same time
    before = (processes(), sorted(Path(tempfile.gettempdir()).iterdir()), Path("/proc/self/mountinfo").read_text())
    asked(
        """
        import os, subprocess, sys, time
        open("file", "w").write("x")
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(0)
        """
        + textwrap.indent(ANSWER, " " * 8)
    )
    after = (processes(), sorted(Path(tempfile.gettempdir()).iterdir()), Path("/proc/self/mountinfo").read_text())
    assert after == before


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_whoever_asked(end: signal.Signals) -> None:
    code = "from orrery.sandbox import *; check(Exam('while True: pass', ''), SandboxLimits(seconds=60))"
    mark = f"# {os.getpid()}-{end}"
    parent = subprocess.Popen([sys.executable, "-c", f"print('up', flush=True); {code} {mark}"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    assert parent.stdout is not None
    parent.stdout.readline()
    until = time.monotonic() + 20
    while len(family(parent.pid)) < 4 and time.monotonic() < until:  # supervisor, parent, first, program
        time.sleep(0.05)
    children = family(parent.pid)
    assert len(children) >= 4
    parent.send_signal(end)
    parent.stdout.close()
    parent.wait(20)
    until = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_what_the_tests_know_is_nowhere_in_the_program() -> None:
    search = """
    import gc, ctypes, os
    def f(x):
        want = "-".join(["a", "secret", "of", "the", "tests"]).encode()
        held = [1 for one in gc.get_objects() if type(one) is dict
                 and any(want.decode() in str(value) for value in one.values())]
        for number in range(64):
            try: held += [1] if want in os.pread(number, 1 << 20, 0) else []
            except OSError: pass
        return 41 if held else "nothing"
    """
    assert asked(search, f"# {SECRET}\nassert f(20) == 'nothing'").passed


def test_nothing_of_the_users_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORRERY_TEST_KEY", SECRET)
    look = """
    import os, sys, getpass, socket
    def f(x):
        return [sorted(os.environ), os.getcwd(), os.listdir("."), os.getuid(), os.path.expanduser("~"),
                socket.gethostname(), os.getppid(), sorted(os.listdir("/"))]
    """
    tests = """
seen = f(0)
assert set(seen[0]) <= {"PATH", "HOME", "TMPDIR", "LC_ALL", "PYTHONHASHSEED"}, seen
assert seen[1:7] == ["/sandbox", [], 65534, "/sandbox", "sandbox", 1], seen
assert set(seen[7]) <= {"dev", "etc", "lib", "lib64", "nix", "root", "home", "opt", "sandbox", "tmp", "usr"}, seen
"""
    verdict = asked(look, tests)
    assert verdict.passed, verdict
    assert not asked("import pytest").passed  # installed packages are no part of it


GOOD: dict[str, tuple[str, str]] = {
    "plain": (ANSWER, TESTS),
    "a name of Python's own": ("def f(x): return x\ndef sum(a, b): return a * b", "assert sum([1, 2]) == 3"),
    "values": (
        "import fractions, collections, decimal\n"
        "def f(x): return (x, [1.5, -0.0, float('inf')], {'a': {1, 2}}, b'x', None, True, 10 ** 30, 2j, range(3),"
        " frozenset({1}), collections.Counter('aab'), fractions.Fraction(1, 3), decimal.Decimal('1.10'))",
        "import fractions, decimal\nassert f('\\u00e9') == ('\\u00e9', [1.5, 0, float('inf')], {'a': {1, 2}}, b'x',"
        " None, True, 10 ** 30, 2j, range(3), frozenset({1}), {'a': 2, 'b': 1}, fractions.Fraction(1, 3),"
        " decimal.Decimal('1.1'))",
    ),
    "what a call does to its arguments": (
        "def f(x):\n    x.sort()\n    x.append(9)", "a = [3, 1]\nassert f(a) is None and a == [1, 3, 9]"),
    "exceptions": (
        "class Own(ValueError): pass\ndef f(x): raise Own(x)",
        "try: f(3)\nexcept ValueError as error: assert '3' in str(error)\nelse: raise AssertionError"),
    "generators": ("def f(x):\n    for n in range(x): yield n", "assert list(f(3)) == [0, 1, 2] and sum(f(4)) == 6"),
    "objects": (
        "class f:\n    def __init__(self, x): self.x = x\n    def twice(self): return 2 * self.x\n"
        "    def same(self, other): return other is self",
        "a = f(4)\nassert a.x == 4 and a.twice() == 8 and a.same(a) and not a.same(f(4))"),
    "functions that take and give functions": (
        "def f(x): return lambda y: x + y", "assert f(2)(3) == 5"),
    "processes of its own": (
        "import subprocess, sys\ndef f(x): return subprocess.run([sys.executable, '-I', '-S', '-c', 'print(41)'],"
        " capture_output=True, text=True).stdout", "assert f(20) == '41\\n', f(20)"),
    "files of its own": (
        "def f(x):\n    open('x', 'w').write('41')\n    return int(open('x').read())", TESTS),
    "the library": (
        "import asyncio, dataclasses, hashlib, json, re, sqlite3, statistics, zlib, datetime, typing, heapq, bisect\n"
        "@dataclasses.dataclass\nclass A:\n    x: int = 40\n"
        "async def g(): return A().x + 1\ndef f(x): return asyncio.run(g())", TESTS),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_right_answers_pass(name: str) -> None:
    code, tests = GOOD[name]
    names = ("f", "Own") if name != "a name of Python's own" else ("f",)
    verdict = check(Exam(code, tests, names), LIMITS)
    assert verdict.passed, verdict


def test_a_builtin_is_the_programs_only_where_asked_for() -> None:
    code = "def abs(x): return 0\ndef f(x): return x"
    assert not check(Exam(code, "assert abs(f(3) - 4) < 1"), LIMITS).passed
    assert check(Exam(code, "assert abs(f(3) - 4) < 1", ("abs", "f")), LIMITS).passed


def test_output_is_kept_also_of_what_is_killed() -> None:
    assert asked("print('so far', end='')\nwhile True: pass", limits=SHORT).output == "so far"


def test_many_at_once_each_alone() -> None:
    told: list[int] = []
    codes = [f"open('x', 'x')\ndef f(x): return {n}" for n in range(38, 44)]
    verdicts = check_all([Exam(code, TESTS, ("f",)) for code in codes], LIMITS, workers=3, done=told.append)
    assert [one.passed for one in verdicts] == [n == 41 for n in range(38, 44)]
    assert told == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "limits", [SandboxLimits(seconds=0), SandboxLimits(memory=-1), SandboxLimits(seconds=float("nan"))]
)
def test_a_limit_that_is_none_is_refused(limits: SandboxLimits) -> None:
    with pytest.raises(UsageError, match="a limit of"):
        check(Exam(ANSWER, TESTS), limits)


def test_without_namespaces_nothing_is_run() -> None:
    """In a process that may make no namespace, the sandbox refuses and names what is missing."""
    code = (
        "from orrery.sandbox import syscalls, Exam, check\nsyscalls.install()\n"
        "try: check(Exam('', ''))\nexcept Exception as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("MachineError generated code is not run here: unshare: Operation not permitted"), said


def test_other_systems_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        sysname, machine, release = "Darwin", "arm64", "23.1.0"

    monkeypatch.setattr(os, "uname", lambda: Other)
    isolation.cache_clear()
    try:
        with pytest.raises(OrreryError, match="Darwin has no namespaces"):
            run.isolation()
    finally:
        isolation.cache_clear()


def processes() -> set[int]:
    """Return the processes that come from this one."""
    return set(family(os.getpid()))


def family(process: int) -> list[int]:
    processes = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        try:
            children = [int(child) for child in (thread / "children").read_text().split()]
        except FileNotFoundError:
            continue
        for child in children:
            processes += [child, *family(child)] if Path(f"/proc/{child}/task").exists() else [child]
    return processes
