"""Boxes as Open Images has them: a row each, with its ends as shares of the picture and a number for its label."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Faults, bad_record, kept
from orrery.data.pictures.files import dimensions
from orrery.data.readers.tables import read_csv
from orrery.data.rows.box_files import between
from orrery.data.rows.pictures import LabelledPicture, bytes_of, finder, of_file

COLUMNS = frozenset({"ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax"})
_DESCRIPTIONS = "*class-descriptions*.csv"
"""The table beside, without a line of names: a label's number (``/m/01g317``) and its name."""
_ENDS = ("XMin", "YMin", "XMax", "YMax")


def read_open_images(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    """Yield the pictures of a table that has these columns; a box round a group is a crowd.

    Raises:
        DataError: a picture has no file, or a box is none.
    """
    rows: dict[str, tuple[str, list[Mapping[str, Any]]]] = {}
    for where, row in read_placed_rows(table):
        rows.setdefault(str(row["ImageID"]), (where, []))[1].append(row)
    find, names = finder(table, next(iter(rows), "")), _names(table.parent)

    def picture(where: str, item: tuple[str, list[Mapping[str, Any]]]) -> LabelledPicture:
        file, own = find(item[0]), item[1]
        size = dimensions(bytes_of(file))
        if size is None:
            raise bad_record(where, f"{file} is no picture")
        things = tuple(between(where, *_box(where, row, size, names)) for row in own)
        return of_file(file, f"{where} ({item[0]})", things)

    yield from kept(((where, (name, own)) for name, (where, own) in rows.items()), picture, skip_bad)


def _box(
    where: str, row: Mapping[str, Any], size: tuple[int, int], names: Mapping[str, str]
) -> tuple[str, list[float], int, bool]:
    """Return the label of a row, its ends in pixels, what these count from, and whether it is a crowd."""
    number, (height, width) = str(row["LabelName"]), size
    try:
        ends = [float(row[end]) * side for end, side in zip(_ENDS, (width, height) * 2, strict=True)]
    except (TypeError, ValueError):
        raise bad_record(where, f"the box {[row[end] for end in _ENDS]} is no left, top, right and bottom") from None
    return names.get(number, number), ends, 0, str(row.get("IsGroupOf")) == "1"


def _names(folder: Path) -> dict[str, str]:
    """Return the names of the labels by their numbers, where a table beside gives them."""
    tables = sorted(folder.glob(_DESCRIPTIONS))
    return {row["1"]: row["2"] for table in tables for _, row in read_csv(table, ("1", "2"), Faults())}
