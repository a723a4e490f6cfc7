"""A bad input: a command line in a small world of files, and what is wrong with the answer to it."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import programs
from hints import shown_faults

CODES = range(6)
LIMIT = 90.0
"""Seconds after which a command hangs; each of them has work for less than five."""


@dataclass(frozen=True)
class Case:
    """A command line.

    ``wants`` is what it must come to: "error" for what cannot mean anything, "ok", or "any" where both are sensible.
    ``before`` changes the world first; ``writes`` are the places that the command may change.
    """

    name: str
    words: Sequence[str]
    wants: Literal["error", "ok", "any"] = "error"
    before: Callable[[Path], None] | None = None
    writes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = "/dev/null"
    fails_with: tuple[int, ...] = tuple(CODES)


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    code: int | None
    out: str
    err: str
    seconds: float


FIXED = {"ORRERY_RUNS": "runs", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "120"}
PROGRAM = """
from orrery.training import machine_rates
from orrery.cli import start
machine_rates.matmul_rate = lambda *of: 1e9  # three seconds of measuring, which no input changes
start.main()
"""
SPARE = 8 << 30
"""Bytes of address space that a command may take beyond what is loaded."""


def carried_out(case: Case, folder: Path, limit: float = LIMIT) -> Answer:
    """Carry out a case in a folder."""
    command = [sys.executable, "-c", PROGRAM, *case.words]
    environment = {**os.environ, **FIXED, **case.environment}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place, open(folder / case.stdin, "rb") as given:
        said = [Path(place, name) for name in ("out", "err")]
        with said[0].open("ab") as out, said[1].open("ab") as err:
            streams = {"stdin": given, "stdout": out, "stderr": err}
            how = {"cwd": folder, "env": environment, "timeout": limit, "space": SPARE}
            try:
                code = programs.run(command, **streams, **how).returncode
            except subprocess.TimeoutExpired:
                code = None
        texts = [path.read_bytes()[:200_000].decode("utf-8", "replace") for path in said]
    return Answer(code, *texts, time.monotonic() - began)


def faults(case: Case, world: Path, folder: Path) -> list[str]:
    """Carry out a case in a copy of the world, and return what is wrong with the answer."""
    shutil.copytree(world, folder, symlinks=True)
    try:
        if case.before is not None:
            case.before(folder)
        before = contents(folder)
        answer = carried_out(case, folder)
        return [*judged(case, answer), *changed(case, answer, before, contents(folder))]
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def judged(case: Case, answer: Answer) -> list[str]:
    """Return what is wrong with the exit code and what was said."""
    said = answer.err[-600:].strip() or answer.out[-200:].strip()
    if answer.code is None:
        return [f"did not end within {LIMIT:g} s: {said}"]
    if "Traceback" in answer.err or "this is a defect" in answer.err or "error: unexpected" in answer.err:
        return [f"an unexpected exception: {said}"]
    if answer.code not in CODES:
        return [f"exit code {answer.code}: {said}"]
    if answer.code and not ("error: " in answer.err and "hint: " in answer.err):
        return [f"exit code {answer.code} without two lines: {said}"]
    if case.wants == "error" and not answer.code:
        return [f"accepted in silence: {said}"]
    if case.wants == "ok" and answer.code:
        return [f"refused: {said}"]
    hints = [line.removeprefix("hint: ") for line in answer.err.splitlines() if line.startswith("hint: ")]
    if answer.code and (wrong := [fault for hint in hints for fault in shown_faults(list(case.words), hint)]):
        return wrong
    if answer.code and answer.code not in case.fails_with:
        return [f"exit code {answer.code}, not among {case.fails_with}: {said}"]
    return []


def contents(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file, and where each link points."""
    by_path = {}
    for root, folders, files in os.walk(folder):
        for name in (*files, *folders):
            path = os.path.join(root, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                by_path[key] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    by_path[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return by_path


def changed(case: Case, answer: Answer, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return which files of the user are others now; a run that failed may have added to its log."""
    allowed = ("log.txt", "lock") if answer.code else ()
    return [
        f"{name} was {'changed' if name in after else 'removed'}"
        for name, digest in before.items()
        if after.get(name) != digest
        and not any(name == place or name.startswith(f"{place}/") for place in case.writes)
        and Path(name).name not in allowed
    ]
