"""The parts of the sandbox in this process: limits, mounts, pipes, what is watched, and how an end is named.

What they do together, to programs that attack them, is in ``test_sandbox.py``.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from orrery.sandbox import first, kernel, supervisor

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is of Linux")

LIMITS = {"seconds": 2.5, "memory": 1 << 28, "processes": 7, "files": 40, "disk": 1 << 20, "output": 10}


@pytest.fixture
def closed_off(monkeypatch):
    """Close off as a user, of whom a shell allows so much at most; return what was asked of the system, in order."""

    def close_off(user=0, most=resource.RLIM_INFINITY):
        asked = []
        for name in ("setgroups", "setresgid", "setresuid"):
            monkeypatch.setattr(first.os, name, lambda *ids, name=name: asked.append((name, *ids)))
        monkeypatch.setattr(first.os, "getuid", lambda: user)
        monkeypatch.setattr(first.resource, "getrlimit", lambda name: (most, most))
        monkeypatch.setattr(first.resource, "setrlimit", lambda name, sizes: asked.append((name, *sizes)))
        monkeypatch.setattr(first.socket, "sethostname", lambda name: asked.append(("host", name)))
        monkeypatch.setattr(first.kernel, "drop_capabilities", lambda: asked.append(("no capabilities",)))
        monkeypatch.setattr(first.kernel, "control", lambda *words: asked.append(("control", *words)))
        monkeypatch.setattr(first.syscalls, "install", lambda: asked.append(("filter",)))
        first._close_off(LIMITS)
        return asked

    return close_off


def test_every_limit_is_set_for_good(closed_off):
    assert {name: sizes for name, *sizes in closed_off() if isinstance(name, int)} == {
        resource.RLIMIT_AS: [1 << 28, 1 << 28],
        resource.RLIMIT_NPROC: [8, 8],  # the process of the tests beside those of the program
        resource.RLIMIT_NOFILE: [40, 40],
        resource.RLIMIT_FSIZE: [1 << 20, 1 << 20],
        resource.RLIMIT_CPU: [3, 3],  # whole seconds, and none too few
        resource.RLIMIT_CORE: [0, 0],
        resource.RLIMIT_MEMLOCK: [0, 0],
    }


def test_a_lower_limit_of_the_shell_stays(closed_off):
    sizes = {name: sizes for name, *sizes in closed_off(most=20) if isinstance(name, int)}
    assert sizes[resource.RLIMIT_AS] == sizes[resource.RLIMIT_NOFILE] == [20, 20]
    assert sizes[resource.RLIMIT_NPROC] == [8, 8]


@pytest.mark.parametrize("user", [0, 1000])
def test_rights_are_given_up_in_an_order_that_takes_nothing_back(user, closed_off):
    steps = [step for step in closed_off(user) if not isinstance(step[0], int)]
    nobody = [("setgroups", []), ("setresgid", *[first.NOBODY] * 3), ("setresuid", *[first.NOBODY] * 3)]
    assert steps == [
        ("host", "sandbox"),
        *(nobody if user == 0 else []),
        ("no capabilities",),
        ("filter",),
        ("control", kernel.PARENT_DEATH, signal.SIGKILL),
    ]


def test_the_numbers_of_mounts_and_namespaces_are_those_of_linux():
    assert (kernel.READ_ONLY, kernel.NO_SUID, kernel.NO_DEVICES) == (os.ST_RDONLY, os.ST_NOSUID, os.ST_NODEV)
    assert (kernel.NO_EXECUTION, kernel.NO_ACCESS_TIME) == (os.ST_NOEXEC, os.ST_NOATIME)
    assert kernel.NO_FOLDER_ACCESS_TIME == os.ST_NODIRATIME
    kinds = {name: getattr(kernel, f"NEW_{name}") for name in ("USER", "PID", "NET", "MOUNT", "UTS", "IPC", "CGROUP")}
    together = 0
    for name, number in kinds.items():
        assert number == getattr(os, f"CLONE_NEW{'NS' if name == 'MOUNT' else name}", number)  # from Python 3.12 on
        together |= number
    assert together == kernel.NAMESPACES
    assert len(set(kinds.values())) == 7


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        (0, 0),
        (os.ST_NOEXEC | os.ST_NOATIME, kernel.NO_EXECUTION | kernel.NO_ACCESS_TIME),
        (os.ST_RELATIME | os.ST_MANDLOCK, kernel.RELATIVE_ACCESS_TIME),
    ],
)
def test_what_is_shown_is_read_only_without_rights_and_devices(own, kept, monkeypatch):
    asked = []
    monkeypatch.setattr(kernel, "mount", lambda *words, flags: asked.append((*words, flags)))
    monkeypatch.setattr(kernel.os, "statvfs", lambda path: SimpleNamespace(f_flag=own))
    kernel.bind("/.machine/lib", "/lib")
    closed = kernel.READ_ONLY | kernel.NO_SUID | kernel.NO_DEVICES
    assert asked == [
        ("/.machine/lib", "/lib", kernel.BIND),
        ("", "/lib", kernel.BIND | kernel.REMOUNT | closed | kept),
    ]


def test_what_the_system_refuses_is_named():
    with pytest.raises(OSError, match="umount /no/such/place: "):
        kernel.unmount("/no/such/place")


def is_open(handle):
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


class BegunError(Exception):
    """Stands for the rest of a process, which does not come back."""


@pytest.mark.parametrize("inside", [True, False])
def test_each_side_keeps_its_own_ends_of_the_pipes(inside, monkeypatch, capsys):
    made, seen, files = [], {}, [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    pipe = os.pipe

    def noted():
        made.append(pipe())
        return made[-1]

    def started(up, given, output, verdict):
        seen["given"] = (up, given, output, verdict)
        raise BegunError

    def watch(parent, up, verdict, output, limits):
        seen["given"] = (parent, up, verdict, output, limits)
        return SimpleNamespace(until_the_end=lambda: {"outcome": "passed"})

    given = {"limits": LIMITS, "code": files[0], "exam": files[1]}
    monkeypatch.setattr(supervisor.os, "pipe", noted)
    monkeypatch.setattr(supervisor, "_unshared", lambda: (0, 77) if inside else (4242, 77))
    monkeypatch.setattr(supervisor, "_start_first", started)
    monkeypatch.setattr(supervisor, "Watch", watch)
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(given)])
    try:
        if inside:
            with pytest.raises(BegunError):
                supervisor.main()
        else:
            supervisor.main()
            assert json.loads(capsys.readouterr().out) == {"outcome": "passed"}
        verdict, output = made
        if inside:
            assert seen["given"] == (77, given, output[1], verdict[1])
        else:
            assert seen["given"] == (4242, 77, verdict[0], output[0], LIMITS)
        assert [is_open(end) for end in (*verdict, *output)] == [not inside, inside] * 2
        assert [is_open(file) for file in files] == [inside] * 2
    finally:
        for handle in (*files, *(end for both in made for end in both)):
            if is_open(handle):
                os.close(handle)


@pytest.mark.parametrize(
    ("user", "written"),
    [
        (0, {"uid_map": "0 0 1\n65534 65534 1", "gid_map": "0 0 1\n65534 65534 1"}),
        (1000, {"setgroups": "deny", "uid_map": "65534 1000 1", "gid_map": "65534 50 1"}),
    ],
)
def test_whoever_asks_is_nobody_inside(user, written, monkeypatch):
    asked = []
    monkeypatch.setattr(supervisor.os, "geteuid", lambda: user)
    monkeypatch.setattr(supervisor.os, "getegid", lambda: 50 if user else 0)
    monkeypatch.setattr(supervisor, "_write", lambda process, file, content: asked.append((process, file, content)))
    supervisor._map_users(4242)
    assert asked == [(4242, file, content) for file, content in written.items()]


@pytest.fixture
def watch(monkeypatch):
    """What watches a sandbox whose ends of the pipes are the test's; its processes hold nothing."""
    (told, tell), (verdict, judge), (output, write) = os.pipe(), os.pipe(), os.pipe()
    os.write(tell, b"4242\n")
    lifeline, alive = os.pipe()
    before = os.dup(0)
    os.dup2(lifeline, 0)
    made = supervisor.Watch(1, told, verdict, output, LIMITS)
    made.judge, made.write = judge, write
    monkeypatch.setattr(made, "_resident", lambda: 0)
    yield made
    os.dup2(before, 0)
    for handle in (told, tell, verdict, output, write, lifeline, alive, before):
        os.close(handle)
    if is_open(judge):
        os.close(judge)


def test_the_verdict_of_the_first_process_is_the_verdict(watch):
    os.write(watch.judge, b'{"began": true}\n{"outcome": "pas')
    assert watch._read_verdict() is None
    assert watch._began > 0
    os.write(watch.judge, b'sed", "detail": ""}\n')
    assert watch._watched() == {"outcome": "passed", "detail": ""}


def test_a_first_process_that_ends_in_silence_is_named(watch):
    os.close(watch.judge)
    assert watch._watched()["detail"] == "the process of the tests ended without a verdict"


@pytest.mark.parametrize(("written", "ended"), [(10, False), (11, True)])
def test_output_may_be_as_long_as_the_limit_and_no_longer(written, ended, watch):
    os.write(watch.write, b"x" * written)
    if not ended:
        assert watch._take_output() == 10
        os.write(watch.judge, b'{"outcome": "passed"}\n')
    verdict = watch._watched()
    assert verdict == (
        {"outcome": "output too long", "detail": "more than 10 bytes"} if ended else {"outcome": "passed"}
    )


def test_time_begins_with_the_code_and_ends_with_the_limit(watch, monkeypatch):
    now = iter([0.0, 5.0, 5.0, 7.5, 7.6])
    monkeypatch.setattr(supervisor, "TICK", 0.0)
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: next(now))
    os.write(watch.judge, b'{"began": true}\n')
    assert watch._watched() == {"outcome": "timed out", "detail": "after 2.5 seconds"}
    assert next(now, None) is None


def test_a_sandbox_that_is_never_set_up_is_missing(watch, monkeypatch):
    now = iter([0.0, 30.0, 30.1])
    monkeypatch.setattr(supervisor, "TICK", 0.0)
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: next(now))
    assert watch._watched() == {"missing": "the sandbox is not set up after 30 seconds"}


@pytest.mark.parametrize("more", [0, 1])
def test_all_processes_together_may_hold_as_much_as_the_limit(more, watch, monkeypatch):
    monkeypatch.setattr(watch, "_resident", lambda: LIMITS["memory"] + more)
    if not more:
        os.write(watch.judge, b'{"began": true}\n')
        monkeypatch.setattr(supervisor, "TICK", 0.0)
        watch._limits = {**LIMITS, "seconds": 0}
    verdict = watch._watched()
    assert verdict["outcome"] == ("memory" if more else "timed out")
    assert not more or verdict["detail"] == "more than 256 MiB in all"


def test_resident_memory_is_that_of_a_process_and_all_that_come_from_it():
    watched = object.__new__(supervisor.Watch)
    watched._first, watched._memory = os.getpid(), 0
    own = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert watched._resident() == watched._memory >= 0.9 * own
    watched._first = 2**22 + 1  # above every number that a process has
    assert watched._resident() == 0 < watched._memory


def shell(line):
    """Return the number of a process that carries out a line."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", line], os.environ)


@pytest.mark.parametrize(
    ("end", "outcome", "detail"),
    [
        ("exit 3", "failed", "the program ended before its tests (exit 3)"),
        ("kill -KILL $$", "killed", "by signal SIGKILL"),
        ("kill -XCPU $$", "timed out", "its time of the processor is used up"),
    ],
)
def test_the_end_of_a_program_is_named(end, outcome, detail, monkeypatch):
    monkeypatch.setattr(first, "GRACE", 20.0)
    assert first._ended(shell(end), "EOFError") == {"outcome": outcome, "detail": detail}


def test_a_program_that_says_nothing_any_more_has_broken_off(monkeypatch):
    monkeypatch.setattr(first, "GRACE", 0.02)
    child = shell("exec sleep 60")
    try:
        assert first._ended(child, "EOFError") == {
            "outcome": "failed",
            "detail": "the program broke off the conversation with its tests (EOFError)",
        }
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
