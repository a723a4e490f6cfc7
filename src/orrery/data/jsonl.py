"""One column of a file of JSON lines, with the file and line of every fault."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

from orrery.data.files import Invalid, decode, open_binary
from orrery.errors import DataError

logger = logging.getLogger(__name__)


def read_column(file: Path, column: str, invalid: Invalid, skip_bad: int) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text of ``column``); empty lines are passed over.

    A bad line (not JSON, not an object, without the column, not a text, not UTF-8) raises `DataError` with
    ``file:line:``; the first ``skip_bad`` of them are logged and left out instead.
    """
    skipped = 0
    offset = 0
    with open_binary(file) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                if line.strip():
                    where = f"{file}:{number}"
                    yield number, _text(decode(line, where, invalid, offset), column, where)
            except DataError as error:
                skipped += 1
                if skipped > skip_bad:
                    raise
                logger.warning("left out: %s", error.message)
            offset += len(line)


def _text(line: str, column: str, where: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(where, f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise _bad(where, f"not an object but {type(row).__name__}")
    if column not in row:
        names = ", ".join(list(row)[:5])
        raise DataError(f"{where}: no column {column!r}", f"it has {len(row):,} columns: {names[:80]}")
    text = row[column]
    if not isinstance(text, str):
        raise _bad(where, f"column {column!r} is not a text but {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _bad(where, f"column {column!r} has a lone surrogate at character {error.start}") from None
    return text


def _bad(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what}", "mend the line, or allow a number of bad lines with skip_bad")
