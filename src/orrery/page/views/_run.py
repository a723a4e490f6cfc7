"""The run that a model belongs to, which may still learn: its curves, its samples, its checkpoints."""

import json
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, final

from orrery.checkpoints import manifest
from orrery.checkpoints.store import CheckpointStore
from orrery.errors import UsageError
from orrery.training.folder import CHECKPOINTS, FINAL, METRICS, SAMPLES

MOST = 2_000
"""Points of one curve."""
TEXTS = 20
"""Samples that are shown, the newest."""
LONGEST = 2_000
"""Characters of a sample."""
_CHUNK = 1 << 20
_NUMBERS = (int, float)
# One for all lines: a run may have hundreds of thousands. What is no number is no point of a curve.
_DECODER = json.JSONDecoder(parse_constant=lambda word: None)


def run_of(folder: Path) -> Path | None:
    """Return the run around a model's folder, its final model or a checkpoint; nothing where it stands alone."""
    around = folder.parent if folder.name == FINAL else folder.parent.parent
    inside = folder.name == FINAL or folder.parent.name == CHECKPOINTS
    return around if inside and (around / METRICS).is_file() else None


@dataclass(frozen=True)
class CheckpointPlace:
    """A checkpoint: its step, and whether it is the best."""

    step: int
    best: bool


def checkpoints(run: Path) -> list[CheckpointPlace]:
    """Return the checkpoints that a run has at this moment, in the order of their steps."""
    store = CheckpointStore(run / CHECKPOINTS)
    best = store.best()
    complete = [step for step in store.steps() if (store.path(step) / manifest.NAME).is_file()]
    return [CheckpointPlace(step, step == best) for step in sorted(complete)]


def checkpoint(run: Path, step: int) -> Path:
    """Return the folder of a checkpoint.

    Raises:
        UsageError: the run has none of this step, or has none any more.
    """
    known = [place.step for place in checkpoints(run)]
    if step not in known:
        hint = f"there are: {', '.join(map(str, known)) or 'none'}; checkpoints.keep says how many a run keeps"
        raise UsageError(f"{run.name} has no checkpoint of step {step}", hint)
    return CheckpointStore(run / CHECKPOINTS).path(step)


def version_of(folder: Path) -> int:
    """Return what changes when another model is written into a checkpoint's folder; 0 where it is no checkpoint."""
    try:
        return (folder / manifest.NAME).stat().st_mtime_ns
    except OSError:
        return 0


@final
class Tail:
    """The records of a file of JSON lines, as they come; the last line counts once it is whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        self._file: tuple[int, int] | None = None

    def begins_anew(self) -> bool:
        """Say whether the file is another than before, or shorter: a run that was resumed or replaced."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        file = (status.st_dev, status.st_ino)
        restarted = self._file is not None and (file != self._file or status.st_size < self._place)
        self._place = 0 if restarted else self._place
        self._file = file
        return restarted

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield the records since the last call; a line that is none is left out."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._place)
            rest = b""
            while chunk := file.read(_CHUNK):
                lines, end, left = (rest + chunk).rpartition(b"\n")
                self._place += len(lines) + len(end)
                rest = left
                for line in lines.split(b"\n") if end else ():
                    record = _record(line)
                    if record is not None:
                        yield record


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and type(value.get("step")) is int else None


@dataclass
class RunCurves:
    """What was measured, by name: steps and values; a value that is not finite is left out."""

    steps: "dict[str, array[int]]" = field(default_factory=lambda: defaultdict(lambda: array("q")))
    values: "dict[str, array[float]]" = field(default_factory=lambda: defaultdict(lambda: array("d")))

    def add(self, record: Mapping[str, Any]) -> None:
        """Take up a line of metrics."""
        for name, value in record.items():
            if name != "step" and type(value) in _NUMBERS and isfinite(value):
                self.steps[name].append(record["step"])
                self.values[name].append(value)

    def points(self) -> dict[str, list[list[int | float]]]:
        """Return ``[step, value]`` of every curve, at most ``MOST`` of each."""
        curves = {name: list(zip(self.steps[name], values, strict=True)) for name, values in self.values.items()}
        return {name: [list(point) for point in thinned(points)] for name, points in curves.items()}


def thinned(points: Sequence[tuple[int, float]], most: int = MOST) -> Sequence[tuple[int, float]]:
    """Return at most so many points: both ends, and of equal parts between them the least and the greatest."""
    if len(points) <= most:
        return points
    inner, parts = points[1:-1], (most - 2) // 2
    kept = [points[0]]
    for number in range(parts):
        part = inner[number * len(inner) // parts : (number + 1) * len(inner) // parts]
        ends = [pick(range(len(part)), key=lambda i: part[i][1]) for pick in (min, max)]
        kept += [part[i] for i in sorted(set(ends))]
    return [*kept, points[-1]]


@final
class RunSeen:
    """A run as one reader follows it.

    Args:
        run: its folder.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self._begin()

    def _begin(self) -> None:
        self._metrics, self._samples = Tail(self.run / METRICS), Tail(self.run / SAMPLES)
        self._told: list[CheckpointPlace] | None = None

    def history(self) -> dict[str, Any]:
        """Return all that there is, thinned: ``curves``, ``samples``, ``checkpoints``."""
        self._begin()
        for tail in (self._metrics, self._samples):
            tail.begins_anew()
        curves = RunCurves()
        for record in self._metrics.new():
            curves.add(record)
        self._told = checkpoints(self.run)
        samples = [_short(sample) for sample in self._samples.new()][-TEXTS:]
        return {"curves": curves.points(), "samples": samples, "checkpoints": list(map(vars, self._told))}

    def news(self) -> list[dict[str, Any]]:
        """Return what has come since, as events; a run that began again is told as a whole."""
        if self._metrics.begins_anew():
            return [{"history": self.history()}]
        events: list[dict[str, Any]] = [{"record": record} for record in self._metrics.new()]
        if len(events) > MOST:
            return [{"history": self.history()}]
        self._samples.begins_anew()
        events += [{"sample": _short(sample)} for sample in self._samples.new()][-TEXTS:]
        now = checkpoints(self.run)
        if now != self._told:
            self._told = now
            events.append({"checkpoints": list(map(vars, now))})
        return events


def _short(sample: Mapping[str, Any]) -> dict[str, Any]:
    text = str(sample.get("text", ""))
    return {"step": sample["step"], "text": text if len(text) <= LONGEST else f"{text[:LONGEST]} …"}
