"""Files of interactions whose name or suffix says their form: MovieLens', RecBole's, SASRec's, LightGCN's, Netflix'."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, Invalid, read_lines
from orrery.data.formats import COMPRESSED
from orrery.data.readers.columns import by_number
from orrery.data.readers.tables import read_csv, read_tsv
from orrery.errors import DataError

Rows = Iterator[tuple[str, dict[str, Any]]]

PUBLISHED = ("user", "item", "rating", "time")
"""The fields of MovieLens' files without a line of names, in their order."""
SEPARATORS = {".dat": "::", ".data": "\t", ".base": "\t", ".test": "\t", ".rating": "\t"}
"""What separates them, by the suffix: ratings.dat of the sets 1M and 10M, u.data and its parts of the set 100K, and the
files of neural collaborative filtering."""
SPACED = ".txt"
"""SASRec's and LightGCN's files, blanks between: a user and an item a line, or each user once with all items."""
BLOCK = ("user", "rating", "time")
"""The fields of Netflix' lines between commas, below a line with the item and a colon."""
TYPED = ".inter"
"""RecBole's atomic file: tabs, and a line of names each followed by its type, as in ``user_id:token``."""
_CHECK_INS = ("\t", ("user", "time", "latitude", "longitude", "item"))
_PLACES = ("\t", ("user", "item", "category_id", "category", "latitude", "longitude", "offset", "time"))
LAYOUTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "userbehavior.csv": (",", ("user", "item", "category", "behavior", "time")),
    "yoochoose-clicks.dat": (",", ("session", "time", "item", "category")),
    "yoochoose-buys.dat": (",", ("session", "time", "item", "price", "quantity")),
    "steam-200k.csv": (",", ("user", "item", "behavior", "value")),
    "gowalla_totalcheckins.txt": _CHECK_INS,
    "brightkite_totalcheckins.txt": _CHECK_INS,
    "dataset_tsmc2014_nyc.txt": _PLACES,
    "dataset_tsmc2014_tky.txt": _PLACES,
}
"""What separates the fields of published files without a line of names, and what these are, by the name."""
IMPRESSIONS = "behaviors.tsv"
"""MIND's file."""


def published_rows(file: Path, invalid: Invalid, *, counted: bool = False) -> Rows | None:
    """Return the placed rows of a file whose name says its form, or nothing where it is a table like others.

    Args:
        file: the file.
        invalid: what is done with bytes that are no UTF-8.
        counted: columns are asked for by number, so that those of ``LAYOUTS`` are not named.

    Raises:
        DataError: it is MIND's, which has a whole history in each row.
    """
    name = (file.stem if file.suffix.lower() in COMPRESSED else file.name).lower()
    suffix = Path(name).suffix
    first = _first(file, invalid) if file.is_file() and (suffix == SPACED or name in LAYOUTS) else ""
    if name == IMPRESSIONS:
        hint = "write each user once with all items: `awk -F'\\t' '$4 {print $2, $4}' FILE | sort -u > NEW.txt`"
        raise DataError(f"{file}: MIND's impressions, each with the whole history of its user", hint)
    if name in LAYOUTS and first[:1].isdecimal() and not counted:  # a copy may have got a line of names
        return _laid_out(file, *LAYOUTS[name], invalid)
    if suffix in SEPARATORS and file.is_file():
        return _unnamed(file, SEPARATORS[suffix], invalid)
    if suffix == SPACED and file.is_file():
        return _blocks(file, invalid) if first[:-1].isdecimal() and first.endswith(":") else _spaced(file, invalid)
    return typed_rows(file, TYPED, invalid)


def typed_rows(file: Path, suffix: str, invalid: Invalid) -> Rows | None:
    """Return the placed rows of RecBole's atomic file, or nothing where the suffix is another."""
    own = Path(file.stem).suffix if file.suffix.lower() in COMPRESSED else file.suffix
    return _typed(file, invalid) if own.lower() == suffix else None


def _first(file: Path, invalid: Invalid) -> str:
    """Return the first line that is not blank."""
    return next((text for line in read_lines(file) if (text := line.text(invalid).strip())), "")


def _laid_out(file: Path, separator: str, names: tuple[str, ...], invalid: Invalid) -> Rows:
    """Yield the rows of a table without a line of names; further fields are passed over."""
    read, numbers = read_csv if separator == "," else read_tsv, tuple(str(n + 1) for n in range(len(names)))
    for number, row in read(file, numbers, Faults(invalid)):
        yield f"{file}:{number}", dict(zip(names, row.values(), strict=False))


def _unnamed(file: Path, separator: str, invalid: Invalid) -> Rows:
    """Yield the rows of a file of MovieLens; further fields are passed over.

    Raises:
        DataError: its first line has no separator.
    """
    first = True
    for line in read_lines(file):
        text = line.text(invalid)
        if not text.strip():
            continue
        fields = text.split(separator)
        if first and len(fields) < 2:
            raise DataError(
                f"{line.where}: no {separator!r} between fields, as MovieLens' {file.suffix} has them", _as_table(text)
            )
        first = False
        yield line.where, dict(zip_longest(PUBLISHED, fields[: len(PUBLISHED)]))


def _spaced(file: Path, invalid: Invalid) -> Rows:
    """Yield a row for each item of a line; a user alone has none, which is told where the row is read.

    Raises:
        DataError: a line has several items, and a user stands in two, as in a table.
    """
    seen, again, lists = set[str](), False, False
    for line in read_lines(file):
        text = line.text(invalid)
        user, *items = text.split() or [""]
        if not user:
            continue
        again, lists = again or user in seen, lists or len(items) > 1
        if (again and lists) or (items[1:] and "\t" in text) or (not items and "," in text):
            many = f"{len(items) + 1} fields, and a {SPACED} of interactions has a user and an item a line"
            raise DataError(f"{line.where}: {many}, or each user once with all items", _as_table(text))
        seen.add(user)
        yield from ((line.where, {"user": user, "item": item}) for item in items or [""])


def _blocks(file: Path, invalid: Invalid) -> Rows:
    """Yield the rows of Netflix' blocks; a block has an item and a colon in its first line."""
    item = ""
    for line in read_lines(file):
        text = line.text(invalid).strip()
        if text.endswith(":"):
            item = text[:-1]
        elif text:
            yield line.where, {"item": item, **dict(zip_longest(BLOCK, text.split(",")[: len(BLOCK)]))}


def _typed(file: Path, invalid: Invalid) -> Rows:
    """Yield the rows of RecBole's atomic file."""
    names: list[str] = []
    for line in read_lines(file):
        fields = line.text(invalid).split("\t")
        if not names:
            names = [field.partition(":")[0] for field in fields]
        elif any(fields):
            missing = dict.fromkeys(names[len(fields) :])
            yield line.where, {**dict(zip(names, fields, strict=False)), **missing}


def _as_table(line: str) -> str:
    """Return the hint that makes a table of a file, and names its columns by number."""
    mark = next((mark for mark in ("\t", ",") if mark in line), None)
    suffix = {"\t": ".tsv", ",": ".csv"}.get(str(mark))
    how = f"name a copy {suffix}" if suffix else "make a table: `tr -s ' ' '\\t' < FILE > NEW.tsv`"
    counted = by_number(line.strip().split(mark))
    return f"{how}; without a line of names --data.user N --data.item N --data.time N count its columns: {counted}"
