"""Who took what when: published files, and tables of any kind, as users, items and times."""

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Invalid, bad_record, kept
from orrery.data.readers.columns import (
    are_numbers,
    are_values,
    by_number,
    check_columns,
    separated_otherwise,
    truth_of,
    with_commas,
)
from orrery.data.readers.interaction_files import published_rows
from orrery.errors import DataError

USERS = ("user", "userid", "uid", "session", "sessionid", "reviewerid", "customerid", "visitorid", "username")
ITEMS = (
    "item", "itemid", "movieid", "parentasin", "asin", "productid", "iid", "businessid", "articleid", "bookid", "isbn",
    "artistid", "songid", "trackid", "videoid", "newsid", "gameid", "appid", "aid", "venueid", "animeid", "recipeid",
    "locationid", "trackuri", "stockcode",
)  # fmt: skip
TIMES = (
    "time", "timestamp", "unixreviewtime", "eventtime", "datetime", "timems", "date", "createdat", "tdat", "ts",
    "eventdate", "utctimestamp", "clicktimestamp", "stime", "dateadded",
)  # fmt: skip
"""Names of columns in small letters, without what parts their words, the likeliest first."""
TAKEN = ("label", "click", "clicked", "is_click")
"""Columns whose 0 says that an item was shown and not taken."""
KINDS = ("event", "eventtype", "eventname", "behavior", "behaviortype", "behaviour", "actiontype", "action", "type")
"""Names of columns with what was done with an item: seen, put aside, bought."""
SHOWN = 10
"""Kinds of actions that are told of by name."""
_CTIME = "%a %b %d %H:%M:%S %z %Y"
"""A date as Foursquare and Goodreads write it: Tue Apr 03 18:00:09 +0000 2012."""
MISSING = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"})
"""What pandas reads as no value: as a name it would make one user of all that have none."""
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
    source: str | Path,
    asked: Mapping[str, str | None],
    *,
    events: Sequence[str] = (),
    invalid: Invalid = "error",
    skip_bad: int = 0,
    tell: Callable[[str], None] = logger.warning,
) -> Iterator[Interaction]:
    """Yield the actions of a file or a named set, in its order.

    What `orrery.data.readers.interaction_files` knows is read by its form; of any table (CSV, tab-separated, JSON
    lines, Parquet, a generated set) the columns are found by their names. A row of JSON without an item, and with a
    list of objects, has an action in each of these.

    Args:
        source: the file or set.
        asked: the columns ``user``, ``item`` and ``time``; what is not named is found.
        events: the kinds of actions that are taken, all where none is named.
        invalid: what is done with bytes that are no UTF-8.
        skip_bad: so many bad lines are left out.
        tell: takes which columns are read, and which kinds of actions there are.

    Rows that say of an item that it was not taken (``TAKEN``), or of another kind, are left out, and counted in a
    warning.

    Raises:
        DataError: a column is not there, no row has one of the ``events``, or a line has no user, no item, or a time
            that is none.
    """
    named = tuple(name for name in asked.values() if name)
    numbers = named if are_numbers(named) else ()
    rows = published_rows(Path(source), invalid, counted=bool(numbers))
    rows = read_placed_rows(source, numbers, invalid=invalid, skip_bad=skip_bad) if rows is None else rows
    columns: dict[str, str | None] = {}
    kinds, passed = Counter[str](), Counter[str]()

    def make(where: str, row: Mapping[str, Any]) -> Interaction | None:
        if not columns:
            columns.update(find_interaction_columns(str(source), list(row), asked))
            _find_more(columns, list(row), f"{source}: ", events, tell)
        time, taken, event = (columns[part] for part in ("time", "taken", "event"))
        if event is not None:
            kinds[kind := str(row.get(event)).strip()] += 1
            if events and kind not in events:
                passed[f"whose {event} is none of {', '.join(events)}"] += 1
                return None
        if taken is not None and truth_of(row.get(taken)) is False:
            passed[f"whose {taken} is 0: shown and not taken"] += 1
            return None
        user, item = (name_of(row, str(columns[part]), where) for part in ("user", "item"))
        return Interaction(user, item, None if time is None else time_of(row.get(time), time, where))

    yield from (each for each in kept(_unfolded(rows, asked.get("item")), make, skip_bad) if each is not None)
    for said in _told(str(source), columns.get("event"), kinds, events):
        tell(said)
    for why, count in passed.items():
        logger.warning("%s: %s rows left out, %s", source, count, why)


def _find_more(
    columns: dict[str, str | None],
    names: Sequence[str],
    source: str,
    events: Sequence[str],
    tell: Callable[[str], None],
) -> None:
    """Add the columns of what was taken and of kinds of actions to those that are read, and tell of them.

    Raises:
        DataError: kinds of actions are asked for, and no column has them.
    """
    rest = [name for name in names if name not in columns.values()]
    columns["taken"] = next((name for name in TAKEN if name in rest), None)
    columns["event"] = event = column_of(rest, KINDS)
    if events and event is None:
        hint = f"call the column {KINDS[0]}, or leave data.events out"
        raise DataError(f"{source}no column is known to hold kinds of actions among {', '.join(names)[:200]}", hint)
    if unread := [name for name in rest if name and name not in columns.values()]:
        read = ", ".join(f"{part} {name}" for part, name in columns.items() if name is not None)
        tell(f"columns: {read}; not read: {', '.join(unread)[:200]}")


def _told(source: str, event: str | None, kinds: Counter[str], events: Sequence[str]) -> Iterator[str]:
    """Yield which kinds of actions there are, where there are several, and how many were taken.

    Raises:
        DataError: there is none of those asked for.
    """
    listed = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(SHOWN))
    listed += f" and {len(kinds) - SHOWN:,} more" if len(kinds) > SHOWN else ""
    if event and (missing := [kind for kind in events if kind not in kinds]):
        raise DataError(f"{source}: no row has the {event} {missing[0]!r}", f"there are: {listed}")
    if len(kinds) > 1 and not events:
        yield f"every {event} is taken: {listed}; data.events names those that are to be taken alone"


def _unfolded(
    rows: Iterable[tuple[str, Mapping[str, Any]]], item: str | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a row for each object of a list, with what stands beside the list, where rows hold their items so."""
    held: str | None = None
    for number, (where, row) in enumerate(rows):
        if not number and item not in row and column_of(row, ITEMS) is None:
            held = next((name for name, value in row.items() if _are_objects(value)), None)
        events = None if held is None else row.get(held)
        if held is None or not _are_objects(events):
            yield where, row
        else:
            beside = {name: value for name, value in row.items() if name != held}
            yield from ((where, {**beside, **event}) for event in events or ())


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


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
        if are_values(names) and not separated_otherwise(names):
            hint = f"count the columns: --data.user N --data.item N --data.time N, of which {by_number(names)}"
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
        if (date := _date(str(value))) is None:
            hint = "write seconds or ISO's form, 2021-01-30T23:59:59, or allow a number of bad ones with `skip_bad=N`"
            raise DataError(f"{where}: {column} is {str(value)[:40]!r}, no time", hint) from None
        time = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(time):
        raise bad_record(where, f"{column} is {str(value)[:40]!r}, no time")
    return time


def _date(text: str) -> datetime | None:
    """Return a date in ISO's form or that of C's ctime with a zone; nothing for other texts."""
    with suppress(ValueError):
        return datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    with suppress(ValueError):
        return datetime.strptime(text, _CTIME)
    return None
