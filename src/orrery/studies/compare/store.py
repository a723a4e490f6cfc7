"""The folder of a comparison: what an earlier call left there, and what is known so far."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.errors import DataError, UsageError
from orrery.studies.compare.charts import figures
from orrery.studies.compare.findings import Comparison, comparison_from
from orrery.studies.compare.folder import another_value
from orrery.studies.compare.page import page
from orrery.studies.compare.plan import Plan

RESULT, PAGE = "compare.json", "compare.html"
GROWING = ("models", "seeds", "budgets", "probes")
"""What a comparison that is continued may have more or less of."""


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
            raise another_value(key, known[key], value)
    return before


def begin(folder: Path, found: Comparison, before: Comparison | None) -> None:
    """Take up what an earlier call found, and note at once what this comparison is of.

    Raises:
        DataError: that was on another text.
    """
    if before is not None:
        if before.corpus != found.corpus:
            message = "--resume: the text is not the one that this comparison began with"
            raise DataError(message, "restore it, or begin again")
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
