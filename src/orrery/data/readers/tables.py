"""Tables as text: CSV as RFC 4180 has it, and tab-separated values, which know no quotes."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, Invalid, bad_record, decode, read_lines
from orrery.data.readers.columns import are_numbers, check_columns, check_names, separated_otherwise, with_commas
from orrery.errors import DataError

logger = logging.getLogger(__name__)

LONGEST_FIELD = 1 << 27
"""Characters. A longer field is a quote that was never closed, and would fill the memory."""

_QUOTED = re.compile(r'\s+"[^"]*"\s*')


def read_csv(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line where it starts, row). A field in double quotes may hold commas, line breaks and "" for one quote.

    The first row names the columns, unless numbers are wanted: then every row is data, and the columns are
    "1", "2", ... A row of another width or with a stray quote is a fault.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))  # the library's 131,072 are less than a novel
    read: list[str] = []
    rows = csv.reader(_kept_in(read, _texts(file)), strict=True)
    return _named(rows, file, wanted, faults, read)


def _kept_in(read: list[str], lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, each put into a list of those that make a record."""
    for line in lines:
        read.append(line)
        yield line


def read_tsv(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, row) of a tab-separated file, as `read_csv`; a quote is a character like any other."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    rows = csv.reader(_texts(file), delimiter="\t", quoting=csv.QUOTE_NONE)
    for line, row in _named(rows, file, wanted, faults, []):
        if any(_is_quoted(value) for value in row.values()):
            _tell_of_quotes(file)
        yield line, row


@cache
def _tell_of_quotes(file: Path) -> None:
    """Say once of a file that its quotes are read as text."""
    how = "as pandas writes it; here quotes are text: save it as .csv, or without quoting"
    logger.warning("%s: a field in quotes with doubled quotes, %s", file, how)


def _is_quoted(field: str) -> bool:
    """Whether a field is one that a writer of CSV put into quotes for the quotes in it, which it doubled."""
    inner = field[1:-1] if len(field) > 1 and field[0] == field[-1] == '"' else ""
    return '""' in inner and '"' not in inner.replace('""', "")


def _texts(file: Path) -> Iterator[str]:
    # A record may span lines, so a bad byte is carried on and told of when its record is whole.
    return (line.content.decode("utf-8", "surrogateescape") for line in read_lines(file))


def _named(
    rows: Any, file: Path, wanted: tuple[str, ...], faults: Faults, read: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the fields of each row their names; ``rows`` is a `csv.reader`, ``read`` as in ``_records``."""
    strict = Faults(faults.invalid)  # a bad first row is never left out: the next one would be taken for names
    line, first = next(_records(rows, file, strict, read), (0, []))
    if not first:
        raise DataError(f"{file}: no rows, not even the names of columns", "check that the file was written whole")
    numbered = are_numbers(wanted)
    names = [str(number) for number in range(1, len(first) + 1)] if numbered else first
    check_columns(str(file), names, wanted)
    check_names(str(file), names, wanted)
    if numbered:
        yield line, dict(zip(names, first, strict=True))
    for line, fields in _records(rows, file, faults, read):
        if len(fields) == len(names):
            yield line, dict(zip(names, fields, strict=True))
        else:
            if fields[-1].startswith('"') and fields[-1].count('"') % 2:
                what = "a field in quotes over several lines, which tab-separated values have not: save it as .csv"
                faults.meet(bad_record(f"{file}:{line}", what))
                continue
            what = f"{len(fields)} fields in the row, {len(names)} columns in the first{separated_otherwise(names)}"
            faults.meet(bad_record(f"{file}:{line}", what))


def _records(rows: Any, file: Path, faults: Faults, read: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line where it starts, fields) without empty lines; ``read`` gets the lines of a record as they stand."""
    while True:
        read.clear()
        line = rows.line_num + 1
        where = f"{file}:{line}"
        try:
            fields = [_text(field, where, faults.invalid) for field in next(rows)]
        except StopIteration:
            return
        except csv.Error as error:
            said, parted = _explained(str(error)), '";' in "".join(read)
            faults.meet(DataError(f"{where}: {said}", with_commas()) if parted else bad_record(where, said))
        except DataError as error:
            faults.meet(error)
        else:
            if quoted := _behind_blank(fields, read):
                what = f"a blank before a quote, which is then no mark: {quoted[:40]!r}; take the blank away"
                faults.meet(bad_record(where, what))
            elif fields:
                yield line, fields


def _behind_blank(fields: Sequence[str], read: Sequence[str]) -> str | None:
    """Return a field whose quotes stand behind a blank and mark nothing; a text in quotes has its own doubled."""
    found = (field for field in fields if field[:1].isspace() and _QUOTED.fullmatch(field))
    return next((field for field in found if field in "".join(read)), None)


def _explained(error: str) -> str:
    if "unexpected end" in error or "field limit" in error:
        return "a quote is opened and never closed"
    if "new-line" in error:
        return "a line ends with a lone CR; save the file with LF or CRLF"
    if "expected after" in error:
        return f"not CSV: {error}; perhaps semicolons or tabs separate the columns"
    return f"not CSV: {error}"


def _text(field: str, where: str, invalid: Invalid) -> str:
    if field.isascii():
        return field
    return decode(field.encode("utf-8", "surrogateescape"), where, invalid)
