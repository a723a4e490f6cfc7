"""A process that has torch loaded and carries out command lines, each in a fork of its own.

Starting Python with torch takes two seconds; a fork takes twenty milliseconds and cannot spoil what comes after it. It
reads one JSON object a line and answers with one: see ``answer``.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = (
    *("cli", "training", "language_model", "exporting", "saving", "reading", "parity", "tasks"),
    *("demo", "compare", "labs"),
)
SPARE = 8 << 30
"""Bytes of address space that a command may take beyond what is loaded."""


def load_everything() -> None:
    """Import what the verbs import, so that the forks need not."""

    for package in (
        "cli",
        "training",
        "language_model",
        "exporting",
        "saving",
        "reading",
        "parity",
        "tasks",
        "demo",
        "compare",
        "labs",
    ):
        root = importlib.import_module(f"orrery.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    from orrery.accounting import flops

    flops.matmul_rate = lambda *of: 1e9  # three seconds of measuring, which no input changes


def carry_out(case: dict) -> None:
    """Become the command: the streams, the folder, the environment; never returns."""
    for number, path, flags in (
        (0, case["stdin"], os.O_RDONLY),
        (1, case["out"], os.O_WRONLY | os.O_APPEND),
        (2, case["err"], os.O_WRONLY | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags), number)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.argv = ["orrery", *case["words"]]
    os.chdir(case["folder"])
    os.environ.update(case["environment"])
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, used + SPARE))
    code = 255
    try:
        from orrery.cli import program

        program.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 255
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


def answer(case: dict) -> dict:
    """Return the exit code (None after the time limit), what was printed, and the seconds of a command."""
    with tempfile.TemporaryDirectory() as folder:
        streams = {name: os.path.join(folder, name) for name in ("out", "err")}
        for path in streams.values():
            Path(path).touch()
        started = time.monotonic()
        child = os.fork()
        if not child:
            os.setsid()
            carry_out(case | streams)
        status = None
        while status is None and time.monotonic() - started < case["limit"]:
            done, found = os.waitpid(child, os.WNOHANG)
            status = found if done else None
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if status is None:
            os.waitpid(child, 0)
        seconds = time.monotonic() - started
        said = {name: Path(path).read_bytes()[:200_000].decode("utf-8", "replace") for name, path in streams.items()}
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {"code": code, "seconds": seconds, **said}


def main() -> None:
    """Answer until standard input ends."""
    # What the commands print must not reach the answers.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    load_everything()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=channel, flush=True)


if __name__ == "__main__":
    main()
