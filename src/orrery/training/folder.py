"""The folder of a run: who may write it, what lies in it, and its metrics without gap or repeat."""

import json
import os
import platform
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orrery
from orrery.checkpoints import strict_json, succession
from orrery.checkpoints.disk import machine_errors, remove, write_text
from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.checkpoints.names import is_ours
from orrery.checkpoints.outputs import is_path
from orrery.errors import ModelFileError, UsageError
from orrery.reports.observers import OBSERVED

METRICS, SAMPLES, LOG, CONFIG, RUN, CHECKPOINTS, FINAL, PROGRESS = (
    "metrics.jsonl",
    "samples.jsonl",
    "log.txt",
    "config.yaml",
    "run.json",
    "checkpoints",
    "final",
    "progress.html",
)
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "additional_chat_templates")
LEFTOVER = re.compile(
    r"(|report\.(json|html)|progress\.html|metrics\.jsonl|samples\.jsonl|config\.yaml|run\.json|final)\.tmp-\d+"
)
"""What a killed process leaves of the files of a run."""
OURS = (METRICS, SAMPLES, LOG, CONFIG, RUN, CHECKPOINTS, FINAL, PROGRESS, OBSERVED, *TOKENIZER)


class RunFolder:
    """An open run folder: paths, the log and the metrics.

    A run that replaces another lies in a folder inside that one's (`succession`) until `take_over`.
    """

    def __init__(self, path: Path, replaces: Path | None = None, names: Iterable[str] = OURS) -> None:
        self.path, self.replaces, self.names = path, replaces, tuple(names)

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    @property
    def final(self) -> Path:
        """The folder of the final model."""
        return self.path / FINAL

    def take_over(self) -> None:
        """Take the place of the run that this one replaces, if there is one: from here on that is gone."""
        if self.replaces is not None:
            with machine_errors(self.replaces):
                succession.take_over(self.replaces, self.names)
            self.path, self.replaces = self.replaces, None

    def log(self, line: str) -> None:
        """Append a line to ``log.txt``."""
        self._append(LOG, line)

    def record(self, values: dict[str, Any]) -> None:
        """Append one record to ``metrics.jsonl``: one line, which a kill can only cut short."""
        self._append(METRICS, json.dumps(values, allow_nan=False))

    def keep_sample(self, step: int, text: str) -> None:
        """Append what the model wrote at a step to ``samples.jsonl``."""
        self._append(SAMPLES, json.dumps({"step": step, "text": text}))

    def _append(self, name: str, line: str) -> None:
        with (
            machine_errors(self.path / name, len(line)),
            # A name of the user's that is no UTF-8 may stand in a line.
            (self.path / name).open("a", encoding="utf-8", errors="backslashreplace") as file,
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
        return self._lines(METRICS)

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.path / name
        if not path.exists():
            return []
        try:
            records = [strict_json.parse(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        except (OSError, ValueError, RecursionError) as error:
            raise _spoilt(path, str(error)) from error
        for number, record in enumerate(records, start=1):
            if not isinstance(record, dict) or type(record.get("step")) is not int:
                raise _spoilt(path, f"line {number} is no object with a step")
        return records

    def rewind(self, first: int) -> None:
        """Drop the records of the step ``first`` and of later ones: they will come again."""
        for name in (METRICS, SAMPLES):
            kept = [record for record in self._lines(name) if record["step"] < first]
            if (self.path / name).exists():
                write_text(self.path / name, "".join(json.dumps(record) + "\n" for record in kept))

    def describe(self, config: str, facts: dict[str, Any]) -> None:
        """Write ``config.yaml`` (the resolved recipe) and ``run.json`` (command line, versions, machine)."""
        with machine_errors(self.path):
            # First what tells a run from a folder of other things.
            write_text(self.path / RUN, json.dumps({**surroundings(), **facts}, indent=1) + "\n")
            write_text(self.path / CONFIG, config)


def _spoilt(path: Path, reason: str) -> ModelFileError:
    hint = "a run writes this file itself: restore it, or remove it to go on without the curve so far"
    return ModelFileError(f"{path} holds no metrics of a run: {reason}", hint)


@contextmanager
def open_run_folder(
    path: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    inputs: Iterable[str | Path] = (),
    beside: Collection[str] = (),
) -> Iterator[RunFolder]:
    """Hold a run folder for one process, after every check that can fail before the first step.

    With ``overwrite`` the run that is there stays whole until the new one's first checkpoint, and for good if there
    is none; other files in its folder are left alone, but for those named ``beside`` a run, which go with it.

    Raises ``UsageError`` for a folder with something in it unless ``resume`` or ``overwrite`` is given and it is a
    run, and where a run to be replaced holds one of the ``inputs``; ``MachineError`` if the folder cannot be written
    or another process holds it.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other", "choose one")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file", "choose another folder with --output")
    with machine_errors(path):
        refuse_folder(path, resume or overwrite, beside)
    with folder_lock(path):
        with machine_errors(path):
            succession.settle(path)
            for entry in path.iterdir():
                if LEFTOVER.fullmatch(entry.name):
                    remove(entry)
            refuse_folder(path, resume or overwrite, beside)
            probe = path / f".tmp-{os.getpid()}"
            probe.write_bytes(b"can this folder be written?")
            probe.unlink()
            staged = overwrite and bool(entries(path))
            if staged:
                refuse_inputs(path, inputs)
            run = RunFolder(succession.begin(path), path, (*OURS, *beside)) if staged else RunFolder(path)
        try:
            yield run
        finally:
            if run.replaces is not None:
                remove(run.path)


def entries(path: Path) -> list[str]:
    """Return the names in a folder that count: all but the lock and what a replacement or a killed write leaves."""
    own = (LOCK, succession.NEW, succession.DECIDED, succession.LEAVING, succession.LEFT)
    names = [entry.name for entry in path.iterdir()] if path.exists() else []
    return sorted(name for name in names if name not in own and not LEFTOVER.fullmatch(name))


def refuse_folder(path: Path, continued: bool, beside: Collection[str] = ()) -> None:
    """Raise ``UsageError`` for a folder that holds something, unless that is a run to be continued or replaced."""
    inside = [name for name in entries(path) if name not in beside]
    if not inside:
        return
    message = f"{path} is not empty: it has {', '.join(inside[:3])}"
    if not holds_run(path):
        raise UsageError(f"{message}, and no run", "choose another folder with --output")
    if not continued:
        raise UsageError(message, "add --resume to continue that run or --overwrite to replace it")


def holds_run(path: Path) -> bool:
    """Say whether a folder holds a run: a ``run.json`` of ours, or checkpoints of ours, or the beginning of both."""
    if (path / succession.DECIDED).is_dir():
        return True
    with suppress(ModelFileError):  # missing, or spoilt
        if "orrery" in read_json(path / RUN):
            return True
    try:
        names = os.listdir(path / CHECKPOINTS)
    except OSError:
        return False
    return all(map(is_ours, names)) if names else set(entries(path)) <= {CHECKPOINTS, *TOKENIZER}


def refuse_inputs(path: Path, inputs: Iterable[str | Path]) -> None:
    """Raise ``UsageError`` where a file that the run reads would be replaced by it."""
    ours = {(path / name).resolve() for name in OURS}
    for name in inputs:
        real = Path(os.path.realpath(name)) if is_path(name) else None
        if real is not None and (real == path.resolve() or ours & {real, *real.parents}):
            message = f"{name}, which this training reads, is part of the run that it would replace"
            raise UsageError(message, "copy it to another place, or choose another folder with --output")


def surroundings() -> dict[str, Any]:
    """Return the command line, the folder it was given in, the versions and the machine of this process."""
    return {
        "command": sys.argv,
        "folder": os.getcwd(),
        "orrery": orrery.__version__,
        "torch": version("torch"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
    }
