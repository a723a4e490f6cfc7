"""The folder of a ladder: who may write it, what an earlier call left there, and what is known so far."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.errors import DataError, UsageError
from orrery.ladder.charts import figures
from orrery.ladder.findings import Findings, findings_from
from orrery.ladder.forecast import forecasts
from orrery.ladder.page import page
from orrery.training.recipes import flatten

RESULT, PAGE, TOKENIZER = "ladder.json", "ladder.html", "tokenizer"


@contextmanager
def ladder_folder(folder: Path, resume: bool) -> Iterator[None]:
    """Hold the folder; only ``--resume`` may find something in it, and that a ladder."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "choose another folder with --output")
    refuse_others(folder, resume)
    with folder_lock(folder):
        refuse_others(folder, resume)
        yield


def refuse_others(folder: Path, resume: bool) -> None:
    """Raise ``UsageError`` for a folder with something in it that is not a ladder to go on with."""
    found = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK) if folder.exists() else []
    begun = RESULT in found or all(
        name == TOKENIZER or name.startswith((f"{RESULT}.tmp-", ".orrery-")) for name in found
    )
    message = f"{folder} is not empty: it has {', '.join(found[:3])}"
    if not begun:
        raise UsageError(f"{message}, and no scaling ladder", "choose another folder with --output")
    if found and not resume:
        raise UsageError(message, "add --resume to go on with it, or choose another folder with --output")


def earlier(folder: Path) -> Findings | None:
    """Return what an earlier call found, if there was one.

    Raises:
        UsageError: its file is not of a ladder.
    """
    file = folder / RESULT
    if not file.exists():
        return None
    try:
        return findings_from(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = f"{file} is not of a scaling ladder: {error}"
        raise UsageError(message, "choose another folder with --output") from error


def refuse_another(before: Findings, found: Findings) -> None:
    """Refuse to go on with a ladder of other settings or of another text.

    Raises:
        UsageError: a setting has changed; it is named.
        DataError: the text has.
    """
    was, now = flatten(before.settings), flatten(found.settings)
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            message = f"--resume: {key} was {was.get(key)!r} and is now {now.get(key)!r}"
            raise UsageError(message, "take the old value, or choose another folder with --output")
    if before.corpus != found.corpus:
        message = "--resume: the text is not the one that this ladder began with"
        raise DataError(message, "restore it, or begin anew")


def leave(folder: Path, found: Findings) -> None:
    """Write what is known so far: JSON, and with a law the figures and the page."""
    told = forecasts(found)
    with machine_errors(folder):
        values = found.as_json() | {"forecasts": {axis: one.as_json() for axis, one in told.items()}}
        write_text(folder / RESULT, json.dumps(values, indent=1) + "\n")
        if told:
            write_text(folder / PAGE, page(found, told))
            for name, svg in figures(found, told).items():
                write_text(folder / f"{name}.svg", svg)
