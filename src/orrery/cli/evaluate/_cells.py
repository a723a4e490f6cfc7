"""What files of predictions hold, a value an example, each with the line it stands in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orrery.errors import DataError, UsageError


@dataclass(frozen=True)
class FileCell:
    """One value of a file, where it stands, and the row that it is of; a file of plain lines has no rows."""

    where: str
    value: Any
    row: Mapping[str, Any] = field(default_factory=dict)


def read_cells(file: Path, column: str) -> list[FileCell]:
    """Return the lines of a text file, or the column of a file of rows (JSON lines, CSV, Parquet).

    Raises:
        DataError: the file is not there, is of another format, has no such column, or holds nothing.
    """
    from orrery.data.files import Faults, read_lines
    from orrery.data.formats import is_plain_text, read_rows

    if is_plain_text(file):
        cells = [FileCell(line.where, line.text("error")) for line in read_lines(file)]
    else:
        rows = read_rows(file, (column,), Faults())
        cells = [FileCell(f"{file}:{number}", row[column], row) for number, row in rows]
    if not cells:
        raise DataError(f"{file}: empty", "check that the file was written whole")
    return cells


def two_files(predicted: Path | None, gold: Path | None, task: str) -> tuple[Path, Path]:
    """Return both files. Raises `UsageError` where one was not given."""
    if predicted is None or gold is None:
        raise UsageError("there is nothing to compare", f"orrery evaluate {task} PREDICTED GOLD")
    return predicted, gold


def check_number(ours: Sequence[FileCell], file: Path, theirs: Sequence[FileCell], other: Path, what: str) -> None:
    """Raise `DataError` with the first place that has no partner, unless both have as many."""
    short, long = sorted([(ours, file), (theirs, other)], key=lambda side: len(side[0]))
    if len(short[0]) < len(long[0]):
        first = long[0][len(short[0])].where
        message = f"{first}: nothing in {short[1]} belongs to it: {len(short[0]):,} {what}, here {len(long[0]):,}"
        raise DataError(message, "number n of one file is compared with number n of the other")
