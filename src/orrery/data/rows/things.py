"""What a picture shows somewhere: its label and its box, and the boxes that tables hold."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.data.files import bad_record
from orrery.errors import DataError

_LABELS, _BOXES = ("label", "category", "categories", "labels"), ("box", "bbox", "boxes")
"""What a table calls the label and the box of a thing."""
_NONE = 'its boxes are no list of {"label": ..., "box": [left, top, width, height]}'
SLACK = 1.0
"""Pixels by which a box may lie outside: annotators' tools round."""


@dataclass(frozen=True)
class Thing:
    """What a picture shows somewhere: its label, and left, top, width and height of its box in pixels.

    ``crowd`` says that the box holds many of them, which nobody is asked to find one by one.
    """

    label: str
    box: tuple[float, float, float, float]
    crowd: bool = False


def box_of(where: str, value: Any) -> tuple[float, float, float, float]:
    """Return a box that a file gives.

    Raises:
        DataError: it is no four finite numbers, or has no width or no height.
    """
    numbers = isinstance(value, Sequence) and len(value) == 4 and all(type(each) in (int, float) for each in value)
    if not numbers or not all(abs(each) < float("inf") for each in value):
        raise bad_record(where, f"the box {str(value)[:60]} is no left, top, width and height")
    if value[2] <= 0 or value[3] <= 0:
        raise bad_record(where, f"the box {str(list(value))[:60]} has no width or no height")
    left, top, width, height = map(float, value)
    return left, top, width, height


def listed(where: str, held: Any) -> Iterator[Thing]:
    """Yield the things of a cell: a list of objects, or the lists of one, as `datasets` has them; also in JSON.

    Raises:
        DataError: it is neither, or a box is none.
    """
    try:
        found = json.loads(held) if isinstance(held, str) else held
    except ValueError as error:
        raise bad_record(where, f"its boxes are no JSON: {error}") from None
    if isinstance(found, Mapping):  # of lists: {"bbox": [[...]], "categories": [0]}
        sides = [next((found[name] for name in names if name in found), None) for names in (_LABELS, _BOXES)]
        lists = [side for side in sides if isinstance(side, list)]
        whole = len(lists) == 2 and len(lists[0]) == len(lists[1])
        found = [{"label": label, "box": box} for label, box in zip(*lists, strict=True)] if whole else None
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise bad_record(where, _NONE)
    for each in found:
        label, box = (next((each[name] for name in names if name in each), None) for names in (_LABELS, _BOXES))
        if label is None:
            raise bad_record(where, _NONE)
        yield Thing(str(label), box_of(where, box), bool(each.get("crowd", each.get("iscrowd"))))


def inside(where: str, thing: Thing, rows: int, columns: int) -> tuple[float, float, float, float]:
    """Return a box cut to its picture: the middle, the width and the height as shares of the sides.

    Raises:
        DataError: it lies outside by more than ``SLACK`` pixels.
    """
    left, top, width, height = thing.box
    right, bottom = left + width, top + height
    if min(left, top) < -SLACK or right > columns + SLACK or bottom > rows + SLACK or left >= columns or top >= rows:
        box, size = ", ".join(f"{each:g}" for each in thing.box), f"{rows} rows and {columns} columns"
        raise DataError(
            f"{where}: the box [{box}] of a {thing.label} lies outside of its picture of {size}",
            "a box is left, top, width and height in pixels; mend it, or leave the picture out",
        )
    left, top, right, bottom = max(0.0, left), max(0.0, top), min(float(columns), right), min(float(rows), bottom)
    return (left + right) / 2 / columns, (top + bottom) / 2 / rows, (right - left) / columns, (bottom - top) / rows
