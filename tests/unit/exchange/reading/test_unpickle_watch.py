"""What the process that opens a pickle may open: files to read, and the one file that it writes."""

import os
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

import programs
from orrery.exchange.reading import closed_in, unpickle


@pytest.mark.parametrize(
    ("mode", "flags", "writes"),
    [
        ("r", 0, False), ("rb", 0, False), ("w", 0, True), ("wb", 0, True), ("a", 0, True), ("x", 0, True),
        ("r+", 0, True), (None, os.O_RDONLY, False), (None, os.O_WRONLY, True), (None, os.O_RDWR | os.O_CREAT, True),
    ],
)  # fmt: skip
def test_an_open_for_writing_is_known_by_its_mode_or_its_flags(mode: str | None, flags: int, writes: bool) -> None:
    assert unpickle._writes(("x", mode, flags)) == writes


CHANGING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_EXCL")
HARMLESS = ("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY")


@pytest.mark.parametrize("changing", CHANGING)
@pytest.mark.parametrize("beside", HARMLESS)
def test_each_flag_that_changes_a_file_is_known_beside_any_other(changing: str, beside: str) -> None:
    """``O_RDONLY | O_TRUNC`` empties a file, ``O_RDONLY | O_CREAT`` makes one."""
    other = getattr(os, beside, 0)
    assert not unpickle._writes(("x", None, other))
    assert unpickle._writes(("x", None, other | getattr(os, changing)))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """The watch over a process that may write ``out``."""
    hooks: list[Callable[..., None]] = []
    monkeypatch.setattr(unpickle.sys, "addaudithook", hooks.append)
    unpickle._watch(tmp_path / "out")
    return hooks[0]


# docs.python.org/3/library/audit_events.html, and what an event of tomorrow may be called
ACTING = """
os.chdir os.chflags os.chmod os.chown os.exec os.fork os.forkpty os.kill os.killpg os.link os.lockf os.mkdir
os.posix_spawn os.putenv os.remove os.removexattr os.rename os.rmdir os.setxattr os.spawn os.startfile os.symlink
os.system os.truncate os.unsetenv os.utime subprocess.Popen socket.__new__ socket.bind socket.connect socket.sendto
shutil.copyfile shutil.move shutil.rmtree sqlite3.connect ctypes.dlopen ctypes.dlsym ctypes.call_function fcntl.ioctl
fcntl.lockf signal.pthread_kill syslog.openlog tempfile.mkstemp pty.spawn urllib.Request ftplib.connect
webbrowser.open winreg.SetValue _winapi.CreateFile resource.setrlimit msvcrt.locking pdb.Pdb a.new.event
"""


@pytest.mark.parametrize("event", ACTING.split())
def test_whatever_acts_is_refused_also_what_nobody_has_heard_of(hook: Callable[..., None], event: str) -> None:
    with pytest.raises(PermissionError, match=f"the file tried {re.escape(event)}"):
        hook(event, ())


def test_a_name_that_says_another_is_not_the_target(hook: Callable[..., None], tmp_path: Path) -> None:
    class Lying(str):
        def __str__(self) -> str:
            return str(tmp_path / "out")

    with pytest.raises(PermissionError, match="the file tried to write"):
        hook("open", (Lying("/elsewhere"), "w", 0))


LOCKED = """
import os, signal, socket, subprocess, sys
from pathlib import Path
from orrery.exchange.reading.closed_in import only_write
folder = Path(sys.argv[1])
locked = only_write(folder / "out")
(folder / "out").write_bytes(b"longer")
(folder / "out").write_bytes(b"new")
acts = {
    "empties": lambda: os.open(folder / "other", os.O_RDONLY | os.O_TRUNC),
    "makes": lambda: os.open(folder / "made", os.O_RDONLY | os.O_CREAT),
    "appends": lambda: open(folder / "other", "a"),
    "pipe": lambda: os.mkfifo(folder / "made"),
    "node": lambda: os.mknod(folder / "made"),
    "folder": lambda: os.mkdir(folder / "made"),
    "link": lambda: os.symlink("other", folder / "made"),
    "name": lambda: os.link(folder / "other", folder / "made"),
    "moves": lambda: os.rename(folder / "other", folder / "made"),
    "removes": lambda: os.unlink(folder / "other"),
    "cuts": lambda: os.truncate(folder / "other", 0),
    "executes": lambda: subprocess.run(["true"]),
    "socket of another family": lambda: socket.socket(40),
}
done = []
for name, act in acts.items():
    try:
        act()
    except PermissionError:
        continue
    done.append(name)
print(locked, done, (folder / "out").read_text(), (folder / "other").read_text(), sorted(os.listdir(folder)))
"""


def test_the_kernel_holds_what_python_does_not_announce(tmp_path: Path) -> None:
    """``os.mkfifo``, ``os.mknod`` and libraries in C tell no hook what they do."""
    (tmp_path / "other").write_text("kept")
    said = programs.run([sys.executable, "-c", LOCKED, str(tmp_path)], capture_output=True, text=True)
    if said.stdout.startswith("False"):
        pytest.skip("this kernel has no Landlock")
    assert said.stdout == "True [] new kept ['other', 'out']\n", said


@pytest.mark.parametrize(
    ("version", "words", "file"),
    [
        (1, ["0x1ff3"], "0x2"), (2, ["0x3ff3"], "0x2"), (3, ["0x7ff3"], "0x4002"), (4, ["0x7ff3", "0x3"], "0x4002"),
        (5, ["0xfff3", "0x3"], "0x4002"), (6, ["0xfff3", "0x3", "0x3"], "0x4002"),
        (9, ["0xfff3", "0x3", "0x3"], "0x4002"),
    ],
)  # fmt: skip
def test_each_version_of_the_lock_is_asked_for_what_it_has(
    version: int, words: list[str], file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """include/uapi/linux/landlock.h: rights of files since version 1, 2, 3 and 5, of ports since 4, scopes since 6."""
    asked: list[tuple[object, ...]] = []

    def call(number: int, *given: object) -> int:
        asked.append((number, *given))
        return version if given[0] is None else os.open(os.devnull, os.O_RDONLY)

    monkeypatch.setattr(closed_in, "_call", call)
    monkeypatch.setattr(closed_in.kernel, "control", lambda *given: asked.append(given))
    assert closed_in._lock(tmp_path / "out")
    content = asked[1][1]
    assert isinstance(content, bytes)
    assert [hex(word) for (word,) in struct.iter_unpack("=Q", content)] == words
    rule = asked[2][3]
    assert isinstance(rule, bytes)
    assert hex(struct.unpack("=Qi", rule)[0]) == file
    assert asked[3] == (closed_in.kernel.NO_NEW_PRIVILEGES, 1)


def test_where_the_kernel_has_no_lock_nothing_is_locked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(closed_in.syscalls, "install", lambda: None)
    for error in (OSError(38, "not there"), AttributeError("no syscall")):
        monkeypatch.setattr(closed_in, "_lock", Mock(side_effect=error))
        assert not closed_in.only_write(tmp_path / "out")
    monkeypatch.setattr(closed_in, "_lock", lambda target: True)
    monkeypatch.setattr(closed_in.syscalls, "install", Mock(side_effect=ValueError("no such machine")))
    assert closed_in.only_write(tmp_path / "out")


def test_only_the_target_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    hooks = []
    monkeypatch.setattr(unpickle.sys, "addaudithook", hooks.append)
    target = tmp_path / "out"
    unpickle._watch(target)
    (hook,) = hooks
    hook("open", (str(target), "wb", 0))
    hook("open", (str(tmp_path / "other"), "rb", 0))
    hook("import", ("json", None))
    for event, given in (
        ("open", (str(tmp_path / "other"), "wb", 0)),
        ("socket.connect", (1, 2)),
        ("os.remove", ("x",)),
    ):
        with pytest.raises(PermissionError, match="the file tried"):
            hook(event, given)


def test_the_limits_leave_room_for_the_tensors_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    set_to = {}
    monkeypatch.setattr(resource, "setrlimit", lambda kind, most: set_to.__setitem__(kind, most))
    for size in (0, 10**6, 10**9):
        unpickle._bound(size)
        written = set_to[resource.RLIMIT_FSIZE][0]
        assert 2 * size < written <= 2 * size + 2**21
        assert set_to[resource.RLIMIT_AS][0] > 3 * size
        assert set_to[resource.RLIMIT_CPU][0] >= 60
        assert set_to[resource.RLIMIT_CORE] == (0, 0)


def test_the_worlds_apart_are_those_of_the_kernel() -> None:
    # sched.h: CLONE_NEWUSER and CLONE_NEWNET are single bits.
    assert (unpickle._NEW_USER, unpickle._NEW_NETWORK) == (1 << 28, 1 << 30)
