"""JSON lines: one object a line, its keys are the columns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, bad_record, read_lines
from orrery.data.readers.columns import check_columns
from orrery.errors import DataError


def read_rows(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, row); empty lines are passed over. Lines may differ in their columns.

    A bad line (not JSON, not an object, not UTF-8, without a wanted column) is a fault.
    """
    for line in read_lines(file):
        if not line.content.strip():
            continue
        try:
            row = _row(line.text(faults.invalid), line.where)
            check_columns(line.where, row, wanted)
        except DataError as error:
            faults.meet(error)
            continue
        yield line.number, row


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise bad_record(where, f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise bad_record(where, f"not an object but {type(row).__name__}")
    return row
