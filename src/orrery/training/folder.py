"""The folder of a run: who may write it, what lies in it, and its metrics without gap or repeat."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orrery
from orrery.checkpoints import strict_json
from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.errors import ModelFileError, UsageError

METRICS, LOG, CONFIG, RUN, CHECKPOINTS, FINAL = (
    "metrics.jsonl",
    "log.txt",
    "config.yaml",
    "run.json",
    "checkpoints",
    "final",
)
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
OURS = (METRICS, LOG, CONFIG, RUN, CHECKPOINTS, FINAL, *TOKENIZER)


class RunFolder:
    """An open run folder: paths, the log and the metrics."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS
        self.final = path / FINAL

    def log(self, line: str) -> None:
        """Append a line to ``log.txt``."""
        self._append(LOG, line)

    def record(self, values: dict[str, Any]) -> None:
        """Append one record to ``metrics.jsonl``: one line, which a kill can only cut short."""
        self._append(METRICS, json.dumps(values, allow_nan=False))

    def _append(self, name: str, line: str) -> None:
        with (
            machine_errors(self.path / name, len(line)),
            (self.path / name).open("a", encoding="utf-8") as file,
        ):
            file.write(line + "\n")

    def sync(self) -> None:
        """Wait until the metrics are on the disk, so that no checkpoint is newer than its metrics."""
        if (self.path / METRICS).exists():
            with machine_errors(self.path), (self.path / METRICS).open("rb") as file:
                os.fsync(file.fileno())

    def records(self) -> list[dict[str, Any]]:
        """Return the records of ``metrics.jsonl``; a last line that was cut by a kill is left out.

        Raises:
            ModelFileError: it holds anything else than records of a run.
        """
        path = self.path / METRICS
        if not path.exists():
            return []
        try:
            found = [strict_json.parse(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        except (OSError, ValueError, RecursionError) as error:
            raise _spoilt(path, str(error)) from error
        for number, record in enumerate(found, start=1):
            if not isinstance(record, dict) or type(record.get("step")) is not int:
                raise _spoilt(path, f"line {number} is no object with a step")
        return found

    def rewind(self, step: int, pending: bool) -> None:
        """Drop the records after ``step``, and that of ``step`` itself if pending: they will come again."""
        kept = [record for record in self.records() if record["step"] < step + (not pending)]
        if (self.path / METRICS).exists():
            write_text(self.path / METRICS, "".join(json.dumps(record) + "\n" for record in kept))

    def describe(self, config: str, facts: dict[str, Any]) -> None:
        """Write ``config.yaml`` (the resolved recipe) and ``run.json`` (command line, versions, machine)."""
        with machine_errors(self.path):
            write_text(self.path / CONFIG, config)
            write_text(self.path / RUN, json.dumps({**surroundings(), **facts}, indent=1) + "\n")


def _spoilt(path: Path, reason: str) -> ModelFileError:
    hint = "a run writes this file itself: restore it, or remove it to go on without the curve so far"
    return ModelFileError(f"{path} holds no metrics of a run: {reason}", hint)


@contextmanager
def open_run_folder(path: Path, *, resume: bool = False, overwrite: bool = False) -> Iterator[RunFolder]:
    """Hold a run folder for one process, after every check that can fail before the first step.

    Raises ``UsageError`` for a folder with something in it unless ``resume`` or ``overwrite`` is given, and
    ``MachineError`` if it cannot be written or another process holds it. ``overwrite`` removes what a run
    writes, nothing else.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other", "choose one")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file", "choose another folder with --output")
    with folder_lock(path):
        with machine_errors(path):
            found = sorted(entry.name for entry in path.iterdir() if entry.name != LOCK)
            if found and not (resume or overwrite):
                message = f"{path} is not empty: it has {', '.join(found[:3])}"
                raise UsageError(message, "add --resume to continue that run or --overwrite to replace it")
            for name in OURS if overwrite else ():
                remove(path / name)
            probe = path / f".tmp-{os.getpid()}"
            probe.write_bytes(b"can this folder be written?")
            probe.unlink()
        yield RunFolder(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def surroundings() -> dict[str, Any]:
    """Return the command line, the versions and the machine of this process."""
    return {
        "command": sys.argv,
        "orrery": orrery.__version__,
        "torch": version("torch"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
    }
