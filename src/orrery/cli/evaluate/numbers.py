"""``orrery evaluate numbers``: predicted numbers against the right ones, without a model.

Pearson's and Spearman's correlation, mean squared and mean absolute error of two files of numbers.
PREDICTED GOLD; --column; --against FILE of a second system; --confidence, --samples, --seed.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from orrery.cli.evaluate._cells import check_number, read_cells, two_files
from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.cli.evaluate._cells import FileCell


def numbers(
    predicted: Path | None = None,
    gold: Path | None = None,
    /,
    *,
    column: str = "score",
    against: Path | None = None,
    trust: Trust = PLAIN,
) -> None:
    """Score predicted numbers by correlations and errors.

    Args:
        predicted: The numbers that were predicted: one a line, or a column of JSON lines, CSV or Parquet.
        gold: The right ones, in the same order.
        column: The numbers' column, where a file has columns.
        against: The numbers of a second system, for paired tests.
        trust: How far the scores can be trusted.
    """
    from orrery.scores.regression import absolute_error, pearson, spearman, squared_error

    files = [*two_files(predicted, gold, "numbers"), *([] if against is None else [against])]
    cells = [read_cells(file, column) for file in files]
    for file, own in zip(files, cells, strict=True):
        check_number(own, file, cells[1], files[1], "numbers")
    ours, right, *other = [[_number(cell) for cell in own] for own in cells]
    centre = sum(right) / len(right)
    scores, *others = [
        [pearson(x, right, centre), spearman(x, right), squared_error(x, right), absolute_error(x, right)]
        for x in (ours, *other)
    ]
    print_scores(scores, others[0] if others else None, trust)


def _number(cell: "FileCell") -> float:
    try:
        number = math.nan if isinstance(cell.value, bool) else float(cell.value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{cell.where}: {cell.value!r} is no finite number", "write one number a line")
    return number
