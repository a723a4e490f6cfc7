"""Parallel text: two files, line n of one is the translation of line n of the other."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from orrery.data.files import Faults, Line, read_lines
from orrery.data.records import Pair
from orrery.errors import DataError

Empty = Literal["error", "skip", "keep"]


def read_pairs(source: Path, target: Path, faults: Faults, empty: Empty) -> Iterator[Pair]:
    """Yield the pairs of lines. One with an empty side is a fault, or is skipped, or is kept.

    A line that is not UTF-8 costs its pair, so that the rest stays aligned. Raises `DataError` with both
    counts where one file has more lines, which shows only at the end.
    """
    ours, theirs = read_lines(source), read_lines(target)
    for number, (left, right) in enumerate(zip_longest(ours, theirs), start=1):
        if left is None or right is None:
            raise _unequal(source, target, number - 1, left, 1 + sum(1 for _ in (theirs if left is None else ours)))
        try:
            pair = Pair(number, left.text(faults.invalid), right.text(faults.invalid))
            bare = not pair.source.strip() or not pair.target.strip()
            if bare and empty == "error":
                where = right.where if pair.source.strip() else left.where
                raise DataError(f"{where}: an empty line in parallel text", "choose `empty`: skip or keep, or mend it")
        except DataError as error:
            faults.meet(error)
            continue
        if not bare or empty == "keep":
            yield pair


def _unequal(source: Path, target: Path, common: int, left: Line | None, more: int) -> DataError:
    counts = (common, common + more) if left is None else (common + more, common)
    return DataError(
        f"{source} has {counts[0]:,} lines, {target} has {counts[1]:,}",
        "line n of one must be the translation of line n of the other; find where they part",
    )
