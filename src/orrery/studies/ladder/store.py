"""The folder of a ladder: what an earlier call left there, and what is known so far."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.errors import DataError, UsageError
from orrery.recipes.read import flatten
from orrery.studies.compare.folder import another_value
from orrery.studies.ladder.charts import figures
from orrery.studies.ladder.findings import Findings, findings_from
from orrery.studies.ladder.forecast import forecasts
from orrery.studies.ladder.page import page

RESULT, PAGE = "ladder.json", "ladder.html"


def earlier(folder: Path, settings: Mapping[str, Any]) -> Findings | None:
    """Return what an earlier call found, if there was one.

    Raises:
        UsageError: its file is not of a ladder, or that had other settings; the first that differs is named.
    """
    file = folder / RESULT
    if not file.exists():
        return None
    try:
        before = findings_from(json.loads(file.read_text(encoding="utf-8")))
        was = flatten(before.settings)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        message = f"{file} is not of a scaling ladder: {error}"
        raise UsageError(message, "choose another folder with --output") from error
    now = flatten(settings)
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            raise another_value(key, was.get(key), now.get(key))
    return before


def refuse_moved(before: Findings, corpus: Mapping[str, Any], sizes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to go on with a ladder whose text or whose sizes are not what they were.

    Raises:
        DataError: the text has changed.
        UsageError: the sizes are counted otherwise, as by another version of the program.
    """
    if before.corpus != corpus:
        message = "--resume: the text is not the one that this ladder began with"
        raise DataError(message, "restore it, or begin again")
    if [{**one, "planned_seconds": 0} for one in before.sizes] != [{**one, "planned_seconds": 0} for one in sizes]:
        message = "--resume: the sizes are not those that this ladder began with"
        raise UsageError(message, "take the version of the program that it was begun with, or begin again")


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
