"""A fork of the warm process is what a started Python is: streams, words, folder, variables, signals, the end."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import programs
from programs import CLOSED, DEVNULL, PIPE, Program

LOOK = """
import json, os, signal, sys, threading
def of(stream):
    names = ("name", "encoding", "errors", "mode", "line_buffering", "write_through", "newlines")
    return stream and {name: getattr(stream, name) for name in names} | {"buffer": type(stream.buffer).__name__}
seen = {
    "streams": [of(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "same": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "words": sys.argv, "first": sys.path[0], "folder": os.getcwd(), "name": __name__,
    "file": globals().get("__file__"), "main": sys.modules["__main__"].__dict__ is globals(),
    "environment": dict(os.environ), "umask": os.umask(0o22), "session": os.getsid(0) == os.getpid(),
    "signals": [str(signal.getsignal(number)) for number in (2, 15, 1, signal.SIGPIPE)],
    "handles": [name for name in os.listdir("/proc/self/fd") if int(name) > 2 and os.path.exists(f"/dev/fd/{name}")],
    "threads": threading.active_count(),
}
open(sys.argv[-1], "w").write(json.dumps(seen))
"""
ENCODINGS = ("", "ascii", "ascii:strict", "latin-1", "utf-8:replace", ":backslashreplace")


def both(tmp_path: Path, *words: str, streams: dict[str, int], **variables: str) -> list[dict]:
    """Return what a started Python and a fork find around them."""
    numbers = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
    environment |= {"OMP_NUM_THREADS": "1", **variables}
    for number, start in enumerate((subprocess.run, programs.run)):
        file = tmp_path / f"found-{number}"
        redirected = {name: value for name, value in streams.items() if value != CLOSED}
        command = [sys.executable, *words, str(file)]
        if start is subprocess.run and len(redirected) < len(streams):
            places = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}
            closed = " ".join(places[name] for name in streams if name not in redirected)
            command = ["bash", "-c", f'exec "$@" {closed}', "bash", *command]
            assert start(command, cwd=tmp_path, env=environment, **redirected).returncode == 0
        else:
            assert start(command, cwd=tmp_path, env=environment, **streams).returncode == 0
        numbers.append(json.loads(file.read_text()))
        numbers[-1]["words"].pop()
    for name in ("_", "SHLVL", "PWD", "OLDPWD"):  # the shell's own
        for each in numbers:
            each["environment"].pop(name, None)
    return numbers


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_streams_are_read_and_written_alike(encoding: str, tmp_path: Path) -> None:
    variables = {"PYTHONIOENCODING": encoding} if encoding else {}
    cold, fork = both(tmp_path, "-c", LOOK, "a", streams={"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}, **variables)
    assert fork == cold


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_none(closed: str, tmp_path: Path) -> None:
    streams = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL, closed: CLOSED}
    cold, fork = both(tmp_path, "-c", LOOK, streams=streams)
    assert None in fork["streams"]
    assert fork == cold


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("how", ["file", "module"])
def test_files_and_modules_know_where_they_are(how: str, unbuffered: str, tmp_path: Path) -> None:
    (tmp_path / "looking.py").write_text(LOOK)
    words = ["looking.py", "a b", "ä"] if how == "file" else ["-m", "looking", "--", "x"]
    streams = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE}
    cold, fork = both(tmp_path, *words, streams=streams, PYTHONUNBUFFERED=unbuffered, OWN="1")
    assert fork == cold


ENDS = {
    "nothing": "print('ä')",
    "a code": "import sys; sys.exit(3)",
    "a large code": "import sys; sys.exit(259)",
    "a text": "import sys; sys.exit('why')",
    "none": "import sys; sys.exit(None)",
    "an error": "1 / 0",
    "an interrupt": "raise KeyboardInterrupt",
    "at once": "import os; os._exit(7)",
    "a signal": "import os; os.kill(os.getpid(), 15)",
    "what was registered": "import atexit; atexit.register(print, 'last')",
    "a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
    "a full disk": "import sys; sys.stdout = open('/dev/full', 'w'); print('x')",
}


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_alike(end: str) -> None:
    command = [sys.executable, "-c", ENDS[end]]
    cold, fork = (start(command, capture_output=True, text=True) for start in (subprocess.run, programs.run))
    assert (fork.returncode, fork.stdout) == (cold.returncode, cold.stdout)
    assert fork.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]


def test_what_is_read_comes_from_where_it_should() -> None:
    command = [sys.executable, "-c", "import sys; print(sys.stdin.read() + '!')"]
    assert programs.run(command, input="one\n", capture_output=True, text=True).stdout == "one\n!\n"
    assert programs.run(command, input=b"two", stdout=PIPE).stdout == b"two!\n"
    large = "x" * 1_000_000
    assert programs.run(command, input=large, capture_output=True, text=True).stdout == f"{large}!\n"


def test_chance_is_new_in_each() -> None:
    code = (
        "import random, numpy, torch, os; print(random.random(), numpy.random.rand(), sep='\\n'); print(torch.rand(1))"
    )
    first, second = (
        programs.run([sys.executable, "-c", code], stdout=PIPE, text=True).stdout.splitlines() for _ in "ab"
    )
    assert len({*first, *second, str(random.random())}) == 7


def test_what_a_fork_cannot_be_is_refused() -> None:
    for name, value in {
        "PYTHONHASHSEED": "3",
        "LC_ALL": "C",
        "NUMBA_CPU_NAME": "haswell",
        "OMP_NUM_THREADS": "2",
    }.items():
        with pytest.raises(ValueError, match="subprocess"):
            programs.run([sys.executable, "-c", ""], env={**os.environ, name: value})
    with pytest.raises(ValueError, match="is not this Python"):
        programs.run(["true"])


def test_a_program_that_takes_too_long_ends_with_what_it_began(tmp_path: Path) -> None:
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.fork() or os.getpid())); time.sleep(60)"
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run([sys.executable, "-c", code, tmp_path / "number"], timeout=1.0, stdout=DEVNULL)
    state = Path(f"/proc/{(tmp_path / 'number').read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_it_is_a_process_that_can_be_signalled_and_asked() -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    with Program([sys.executable, "-c", code], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM
    process.kill()  # it has ended: nothing is hit
    assert process.wait() == -signal.SIGTERM


def test_room_and_space_are_bounded(tmp_path: Path) -> None:
    write = [
        sys.executable,
        "-c",
        "import sys; open(sys.argv[1], 'wb', 0).write(bytes(5000)) and open(sys.argv[1], 'ab', 0).write(b'x')",
        tmp_path / "a",
    ]
    assert b"File too large" in programs.run(write, stderr=PIPE, room=4096).stderr
    assert programs.run(write).returncode == 0
    take = [sys.executable, "-c", "bytearray(200 << 20)"]
    assert b"MemoryError" in programs.run(take, stderr=PIPE, space=100 << 20).stderr
    assert programs.run(take).returncode == 0
