"""Who took what when: MovieLens' and RecBole's files, and tables of any kind, as users, items and times."""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Invalid, bad_record, kept, read_lines
from orrery.data.formats import COMPRESSED
from orrery.data.readers.columns import are_numbers, check_columns, separated_otherwise, truth_of, with_commas
from orrery.errors import DataError

USERS = ("user", "userid", "uid", "session", "sessionid", "reviewerid", "customerid", "visitorid", "username")
ITEMS = (
    "item", "itemid", "movieid", "parentasin", "asin", "productid", "iid", "businessid", "articleid", "bookid", "isbn",
    "artistid", "songid", "trackid", "videoid", "newsid", "gameid", "appid", "aid",
)  # fmt: skip
TIMES = (
    "time", "timestamp", "unixreviewtime", "eventtime", "datetime", "date", "createdat", "tdat", "ts", "eventdate",
)  # fmt: skip
"""Names of columns in small letters, without what parts their words, the likeliest first."""
TAKEN = ("label", "click", "clicked", "is_click")
"""Columns whose 0 says that an item was shown and not taken."""
MISSING = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"})
"""What pandas reads as no value: as a name it would make one user of all that have none."""
PUBLISHED = ("user", "item", "rating", "time")
"""The fields of MovieLens' files without a line of names, in their order."""
SPACED = ".txt"
"""SASRec's file: a user and an item a line, blanks between, in the order of time."""
SEPARATORS = {".dat": "::", ".data": "\t", ".base": "\t", ".test": "\t", SPACED: None}
"""What separates them, by the suffix: ratings.dat of the sets 1M and 10M, u.data and its parts of the set 100K."""
TYPED = ".inter"
"""RecBole's atomic file: tabs, and a line of names each followed by its type, as in ``user_id:token``."""
_COPY = "name a copy .csv or .tsv; without a line of names --data.user 1 --data.item 3 --data.time 2 count its columns"
_LISTS = ("_list", "_seq")
"""How RecBole calls columns with a whole history, of which the item of the row is the next."""
_APART = re.compile(r"[^a-z0-9]")
_WHOLE = re.compile(r"[0-9]+\.0")
logger = logging.getLogger(__name__)


class Interaction(NamedTuple):
    """One action: who, what, and when (``None`` where the file has no times)."""

    user: str
    item: str
    time: float | None


def read_interactions(
    source: str | Path, asked: Mapping[str, str | None], *, invalid: Invalid = "error", skip_bad: int = 0
) -> Iterator[Interaction]:
    """Yield the actions of a file or a named set, in its order.

    ``ratings.dat``, ``u.data`` and SASRec's ``.txt`` have no line of names and are known by their suffix, as is
    RecBole's ``.inter``; of any table (CSV, tab-separated, JSON lines, Parquet, a generated set) the columns are found
    by their names.

    Args:
        source: the file or set.
        asked: the columns ``user``, ``item`` and ``time``; what is not named is found.
        invalid: what is done with bytes that are no UTF-8.
        skip_bad: so many bad lines are left out.

    Rows that say of an item that it was not taken (``TAKEN``) are left out, and counted in a warning.

    Raises:
        DataError: a column is not there, or a line has no user, no item, or a time that is none.
    """
    rows = published_rows(Path(source), PUBLISHED, SEPARATORS, invalid)
    named = tuple(name for name in asked.values() if name)
    numbers = named if are_numbers(named) else ()
    rows = read_placed_rows(source, numbers, invalid=invalid, skip_bad=skip_bad) if rows is None else rows
    columns: dict[str, str | None] = {}
    passed = 0

    def make(where: str, row: Mapping[str, Any]) -> Interaction | None:
        if not columns:
            columns.update(find_interaction_columns(str(source), list(row), asked))
            columns["taken"] = next((name for name in TAKEN if name in row and name not in columns.values()), None)
        time, taken = columns["time"], columns["taken"]
        if taken is not None and truth_of(row[taken]) is False:
            return None
        user, item = (name_of(row, str(columns[part]), where) for part in ("user", "item"))
        return Interaction(user, item, None if time is None else time_of(row[time], time, where))

    for each in kept(rows, make, skip_bad):
        passed += each is None
        if each is not None:
            yield each
    if passed:
        logger.warning("%s: %s rows left out, whose %s is 0: shown and not taken", source, passed, columns["taken"])


def published_rows(
    file: Path, names: Sequence[str], separators: Mapping[str, str | None], invalid: Invalid, typed: str = TYPED
) -> Iterator[tuple[str, dict[str, Any]]] | None:
    """Return the placed rows of a file whose suffix says its format, or nothing where it is a table like others.

    Args:
        file: the file.
        names: of its fields, where it has no line of names; further fields are passed over.
        separators: of the fields, by the suffix of such files.
        invalid: what is done with bytes that are no UTF-8.
        typed: the suffix of RecBole's files of this content.
    """
    suffix = Path(file.stem).suffix if file.suffix.lower() in COMPRESSED else file.suffix
    if suffix.lower() == typed:
        return _typed(file, invalid)
    if suffix.lower() in separators and file.is_file():
        return _unnamed(file, names, separators[suffix.lower()], invalid)
    return None


def _unnamed(file: Path, names: Sequence[str], separator: str | None, invalid: Invalid) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a file without a line of names.

    Raises:
        DataError: its first line has no separator.
    """
    first = True
    for line in read_lines(file):
        text = line.text(invalid)
        if not text.strip():
            continue
        fields = text.split(separator)
        if first and separator is not None and len(fields) < 2:
            raise DataError(
                f"{line.where}: no {separator!r} between fields, as MovieLens' {file.suffix} has them", _COPY
            )
        if separator is None and len(fields) != 2:
            many = f"{len(fields)} fields, and a {SPACED} of interactions has a user and an item a line"
            raise DataError(f"{line.where}: {many}", _COPY)
        first = False
        missing = dict.fromkeys(names[len(fields) :] if separator else ())
        yield line.where, {**dict(zip(names, fields, strict=False)), **missing}


def _typed(file: Path, invalid: Invalid) -> Iterator[tuple[str, Any]]:
    """Yield the rows of RecBole's atomic file."""
    names: list[str] = []
    for line in read_lines(file):
        fields = line.text(invalid).split("\t")
        if not names:
            names = [field.partition(":")[0] for field in fields]
        elif any(fields):
            missing = dict.fromkeys(names[len(fields) :])
            yield line.where, {**dict(zip(names, fields, strict=False)), **missing}


def find_interaction_columns(
    source: str, names: Sequence[str], asked: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return the columns of users, items and times: those asked for, else by their names; there may be no times.

    Raises:
        DataError: a column is not there, or those of users or items cannot be told.
    """
    check_columns(source, names, tuple(name for name in asked.values() if name))
    known = {"user": USERS, "item": ITEMS, "time": TIMES}
    found = {part: asked.get(part) or column_of(names, usual) for part, usual in known.items()}
    if listed := [name for name in names for end in _LISTS if found["item"] and name == f"{found['item']}{end}"]:
        message = f"{source}: {listed[0]} has the history of each {found['item']}, which would not be read"
        raise DataError(message, "give the file of single actions, a row each")
    if lacking := [part for part in ("user", "item") if found[part] is None]:
        hint = f"name it: --data.{lacking[0]} COLUMN, or all by number, from 1, where no line names them"
        there = ", ".join(names)[:200] + (guess := separated_otherwise(names))
        hint += f"; {with_commas()}" if ";" in guess else ""
        raise DataError(f"{source}: no column is known to hold the {lacking[0]} among {there}", hint)
    return found


def column_of(names: Iterable[str], known: Sequence[str]) -> str | None:
    """Return the column that is called by the likeliest of the known names, however it parts and writes its words."""
    plain = {_APART.sub("", name.lower()): name for name in reversed([*names])}
    return next((plain[name] for name in known if name in plain), None)


def name_of(row: Mapping[str, Any], column: str, where: str) -> str:
    """Return the name of a user or an item; whatever whitespace is in it is one blank.

    Raises:
        DataError: there is none.
    """
    value = row.get(column)
    if isinstance(value, list | tuple | Mapping):
        raise DataError(f"{where}: {column} holds a list or an object", "write a row for each action")
    # A column with a gap comes as floats out of many programs.
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    value = value[:-2] if isinstance(value, str) and _WHOLE.fullmatch(value) else value
    value = None if isinstance(value, float) and not math.isfinite(value) else value
    name = "" if value is None else " ".join(str(value).split())
    if not name:
        raise bad_record(where, f"{column} is empty")
    if name in MISSING:
        hint = "data.user and data.item name other columns; or allow a number of such rows with `skip_bad=N`"
        raise DataError(f"{where}: {column} is {name!r}, as programs write that there is none", hint)
    return name


def time_of(value: Any, column: str, where: str) -> float:
    """Return a time as a number: seconds, or any other count, or a date in ISO's form.

    Raises:
        DataError: it is none.
    """
    try:
        time = float(value)
    except (TypeError, ValueError):
        try:
            date = datetime.fromisoformat(str(value).replace(" UTC", "+00:00"))
        except ValueError:
            hint = "write seconds or ISO's form, 2021-01-30T23:59:59, or allow a number of bad ones with `skip_bad=N`"
            raise DataError(f"{where}: {column} is {str(value)[:40]!r}, no time", hint) from None
        time = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(time):
        raise bad_record(where, f"{column} is {str(value)[:40]!r}, no time")
    return time
