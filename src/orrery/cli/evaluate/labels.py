"""``orrery evaluate labels``: predicted labels against the right ones, without a model.

Accuracy, F1 (macro, micro, weighted; of each label) and Matthews' correlation of two files of labels.
PREDICTED GOLD; --separator where a line has several labels, --column; --against FILE of a second system; --confidence,
--samples, --seed.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orrery.cli.evaluate._cells import check_number, read_cells, two_files
from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.cli.evaluate._cells import FileCell
    from orrery.scores.resampled import AdditiveScore

Labels = list[str] | list[frozenset[str]]


def labels(
    predicted: Path | None = None,
    gold: Path | None = None,
    /,
    *,
    separator: str | None = None,
    column: str = "label",
    against: Path | None = None,
    trust: Trust = PLAIN,
) -> None:
    """Score predicted labels by accuracy, F1 and Matthews' correlation.

    Args:
        predicted: The labels that were predicted: one a line, or a column of JSON lines, CSV or Parquet.
        gold: The right ones, in the same order.
        separator: What stands between the labels of a line that has several; an empty line has none.
        column: The labels' column, where a file has columns; lists in it are several labels.
        against: The labels of a second system, for paired tests.
        trust: How far the scores can be trusted.
    """
    from orrery.scores.classification import by_label

    files = [*two_files(predicted, gold, "labels"), *([] if against is None else [against])]
    cells = [read_cells(file, column) for file in files]
    for file, own in zip(files, cells, strict=True):
        check_number(own, file, cells[1], files[1], "labels")
    several = separator is not None or isinstance(cells[1][0].value, list)
    sides = [_read(own, separator, several) for own in cells]
    known = sorted({label for side in sides for own in side for label in ([own] if isinstance(own, str) else own)})
    _tell_of_spellings(known)
    scores = _scores(sides[0], sides[1], known)
    others = None if against is None else _scores(sides[2], sides[1], known)
    print_scores(scores, others, trust)
    if others is not None:
        _print_mcnemar(scores[0], others[0])
    print(f"{'precision':>9} {'recall':>9} {'F1':>9} {'right':>9}  label")
    for line in by_label(sides[0], sides[1]):
        print(f"{line.precision:9.4f} {line.recall:9.4f} {line.f1:9.4f} {line.support:9,}  {line.label}")


def _tell_of_spellings(known: list[str]) -> None:
    """Say which labels are nearly equal, as 1 and 1.0 are: they count as two."""
    from orrery.data.rows.label_notes import MOST_COMPARED, near

    for first, second in near(known) if len(known) <= MOST_COMPARED else []:
        print(f"warning: the labels {first!r} and {second!r} are nearly equal, and counted as two", file=sys.stderr)


def _scores(predicted: Labels, gold: Labels, known: list[str]) -> "list[AdditiveScore]":
    from orrery.scores.classification import accuracy, f1, matthews
    from orrery.scores.precision_recall import AVERAGES

    several = isinstance(gold[0], frozenset)
    scores = [accuracy(predicted, gold), *(f1(predicted, gold, average, known) for average in AVERAGES)]
    return scores if several else [*scores, matthews(predicted, gold, known)]


def _print_mcnemar(ours: "AdditiveScore", theirs: "AdditiveScore") -> None:
    from orrery.scores.mcnemar import mcnemar

    right = [[bool(share) for share in score.sums[:, 0]] for score in (ours, theirs)]
    print(mcnemar(*right))


def _read(cells: "list[FileCell]", separator: str | None, several: bool) -> Labels:
    if several:
        return [frozenset(_word(label, cell.where) for label in _parts(cell, separator)) for cell in cells]
    return [_word(cell.value, cell.where) for cell in cells]


def _parts(cell: "FileCell", separator: str | None) -> list[object]:
    if isinstance(cell.value, list):
        return cell.value
    if separator is None:
        raise DataError(f"{cell.where}: one label where others are lists", "give lists in all rows, or in none")
    return [part.strip() for part in str(cell.value).split(separator)] if str(cell.value).strip() else []


def _word(value: object, where: str) -> str:
    if isinstance(value, str | int) and str(value).strip():
        return str(value).strip()
    shown = "no label" if isinstance(value, str) or value is None else f"no label: {value!r}"
    raise DataError(f"{where}: {shown}", "a label is a word or a whole number; --separator lets a text have none")
