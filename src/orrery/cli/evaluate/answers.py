"""``orrery evaluate answers``: short answers to questions against the right ones, without a model.

Exact match and F1 of words, as in SQuAD, with several right answers or none.
PREDICTED GOLD; --column, --gold-column; --against FILE of a second system; --confidence, --samples, --seed.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from orrery.cli.evaluate._cells import check_number, read_cells, two_files
from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.cli.evaluate._cells import FileCell


def answers(
    predicted: Path | None = None,
    gold: Path | None = None,
    /,
    *,
    column: str = "answer",
    gold_column: str = "answers",
    against: Path | None = None,
    trust: Trust = PLAIN,
) -> None:
    """Score answers by exact match and by the words that they share with the right ones.

    Args:
        predicted: The answers: one a line, or a column of JSON lines; an empty one says that there is no answer.
        gold: JSON lines with a list of right answers for each question, in the same order; [] where there is none.
        column: The column of the answers.
        gold_column: The column of the right answers.
        against: The answers of a second system, for paired tests.
        trust: How far the scores can be trusted.
    """
    from orrery.scores.answers import answer_f1, exact_match

    file, right_file = two_files(predicted, gold, "answers")
    cells = read_cells(right_file, gold_column)
    right = [_right(cell) for cell in cells]
    sides = [_read(own, column, cells, right_file) for own in (file, against) if own is not None]
    scores, *others = [[exact_match(side, right), answer_f1(side, right)] for side in sides]
    print_scores(scores, others[0] if others else None, trust)


def _read(file: Path, column: str, right: "list[FileCell]", right_file: Path) -> list[str]:
    """Return the answers of a file; where both files have ids, they are in the same order."""
    cells = read_cells(file, column)
    for cell, other in zip(cells, right, strict=False):
        if cell.row.get("id", other.row.get("id")) != other.row.get("id", cell.row.get("id")):
            message = f"{cell.where}: the question {cell.row['id']!r}, at {other.where} {other.row['id']!r}"
            raise DataError(message, "both files have the same questions in the same order")
        if not isinstance(cell.value, str):
            raise DataError(f"{cell.where}: {cell.value!r} is no answer", 'an answer is a text; "" says there is none')
    check_number(cells, file, right, right_file, "answers")
    return [cell.value for cell in cells]


def _right(cell: "FileCell") -> list[str]:
    if not isinstance(cell.value, list) or not all(isinstance(answer, str) for answer in cell.value):
        raise DataError(f"{cell.where}: no list of right answers", 'write {"answers": ["one", "another"]}, or []')
    return cell.value
