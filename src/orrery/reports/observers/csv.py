"""A table of the metrics that spreadsheets read."""

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from orrery.reports.observers import Event, Observer, RunBegan, StepLearned, place, register
from orrery.schema.section import Section

TABLE = "metrics.csv"


@register
class Csv(Observer):
    """``observers/metrics.csv`` in the run's folder: a row for each line of metrics, a column for each measure.

    A measure that a line does not have, or that is not finite, is an empty cell. The table is written again where a
    measure comes for the first time, else a row is added.
    """

    class Settings(Section):
        """There is nothing to set."""

        kind: Literal["csv"] = "csv"

    def observe(self, event: Event) -> None:
        """Drop the rows that come again, and add one for each record."""
        if isinstance(event, RunBegan):
            file = place(event.folder) / TABLE
            columns, rows = _read(file)
            _write(file, columns, [row for row in rows if int(row["step"]) < event.first])
        elif isinstance(event, StepLearned) and event.record is not None:
            _add(place(event.folder) / TABLE, event.numbers)


def _read(file: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Return columns and rows of a table; a last row that was cut by a kill is left out."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    reader = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
    return list(reader.fieldnames or ()), list(reader)


def _add(file: Path, row: Mapping[str, Any]) -> None:
    with file.open(encoding="utf-8", newline="") as lines:
        columns = next(csv.reader(lines), [])
    if new := [name for name in row if name not in columns]:
        _write(file, columns + new, [*_read(file)[1], row])
        return
    with file.open("a", encoding="utf-8", newline="") as lines:
        csv.DictWriter(lines, columns, lineterminator="\n").writerow(row)


def _write(file: Path, columns: list[str], rows: list[Any]) -> None:
    """Write a table, complete or not at all."""
    fresh = file.with_name(f"{file.name}.tmp")
    with fresh.open("w", encoding="utf-8", newline="") as lines:
        table = csv.DictWriter(lines, columns, lineterminator="\n")
        if columns:
            table.writeheader()
        table.writerows(rows)
    os.replace(fresh, file)
