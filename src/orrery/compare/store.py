"""The folder of a comparison: who may write it, what an earlier call left there, and what is known so far."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.compare.charts import figures
from orrery.compare.findings import Comparison, comparison_from
from orrery.compare.page import page
from orrery.compare.plan import Plan
from orrery.errors import DataError, UsageError

RESULT, PAGE, TOKENIZER = "compare.json", "compare.html", "tokenizer"
GROWING = ("models", "seeds", "budgets", "probes")
"""What a comparison that is continued may have more or less of."""


@contextmanager
def compare_folder(folder: Path, resume: bool) -> Iterator[None]:
    """Hold the folder; only ``--resume`` may find something in it, and that a comparison."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "choose another folder with --output")
    refuse_others(folder, resume)
    with folder_lock(folder):
        refuse_others(folder, resume)
        yield


def refuse_others(folder: Path, resume: bool) -> None:
    """Raise ``UsageError`` for a folder with something in it that is not a comparison to go on with."""
    found = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK) if folder.exists() else []
    begun = RESULT in found or all(
        name == TOKENIZER or name.startswith((f"{RESULT}.tmp-", ".orrery-")) for name in found
    )
    message = f"{folder} is not empty: it has {', '.join(found[:3])}"
    if not begun:
        raise UsageError(f"{message}, and no comparison", "choose another folder with --output")
    if found and not resume:
        raise UsageError(message, "add --resume to go on with it, or choose another folder with --output")


def earlier(folder: Path, plan: Plan) -> Comparison | None:
    """Return what an earlier call found, if there was one.

    Raises:
        UsageError: that was another comparison.
    """
    file = folder / RESULT
    if not file.exists():
        return None
    try:
        before = comparison_from(json.loads(file.read_text(encoding="utf-8")))
        settings: Mapping[str, Any] = before.settings
        known = {key: settings[key] for key in plan.settings()}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{file} is not of a comparison: {error}", "choose another folder with --output") from error
    for key, value in plan.settings().items():
        if known[key] != value and key not in GROWING:
            message = f"--resume: {key} was {known[key]!r} and is now {value!r}"
            raise UsageError(message, "take the old value, or choose another folder with --output")
    return before


def begin(folder: Path, found: Comparison, before: Comparison | None) -> None:
    """Take up what an earlier call found, and note at once what this comparison is of.

    Raises:
        DataError: that was on another text.
    """
    if before is not None:
        if before.corpus != found.corpus:
            message = "--resume: the text is not the one that this comparison began with"
            raise DataError(message, "restore it, or begin anew")
        found.entries, found.sweeps, found.speeds, found.probes = (
            before.entries,
            before.sweeps,
            before.speeds,
            before.probes,
        )
    note(folder, found)


def note(folder: Path, found: Comparison) -> None:
    """Write the values that are known so far."""
    with machine_errors(folder):
        write_text(folder / RESULT, json.dumps(found.as_json(), indent=1) + "\n")


def leave(folder: Path, found: Comparison) -> None:
    """Write what is known so far: JSON, page and figures."""
    note(folder, found)
    with machine_errors(folder):
        write_text(folder / PAGE, page(found))
        for name, svg in figures(found).items():
            write_text(folder / f"{name}.svg", svg)
