"""HellaSwag (Zellers et al. 2019): which of four endings follows the beginning of a description."""

import re
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.benchmarks.choices import ChoiceQuestion, place_of, refuse_none

_COLUMNS = ("activity_label", "ctx_a", "ctx_b", "endings", "label")
_HINT = f"the authors' lines have the columns {', '.join(_COLUMNS)}"


def read_hellaswag(source: str, first: int | None = None) -> list[ChoiceQuestion]:
    """Return the questions of the authors' JSON lines, cleaned as in lm_eval.

    Raises:
        DataError: a row is of another shape, with its file and line.
    """
    questions: list[ChoiceQuestion] = []
    for where, row in read_placed_rows(source, _COLUMNS):
        if first is not None and len(questions) == first:
            break
        endings = row["endings"]
        activity, begins, goes_on = (row[name] for name in _COLUMNS[:3])
        if not isinstance(endings, list) or len(endings) < 2:
            raise DataError(f"{where}: `endings` is no list of two or more texts", _HINT)
        if not all(isinstance(text, str) for text in (activity, begins, goes_on, *endings)):
            raise DataError(f"{where}: a value that is no text", _HINT)
        questions.append(_question(where, activity, begins, goes_on, endings, row["label"]))
    return refuse_none(questions, source)


def _question(where: str, activity: str, begins: str, goes_on: str, endings: list[str], label: Any) -> ChoiceQuestion:
    context = cleaned(f"{activity}: {begins} {goes_on.capitalize()}")
    choices = tuple(map(cleaned, endings))
    answer = place_of(label, endings, where)
    return ChoiceQuestion(where, context, choices, answer, item=f"{begins} {goes_on} {endings[answer]}")


def cleaned(text: str) -> str:
    """Return a text without the marks of WikiHow's pages in square brackets."""
    return re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". ")).replace("  ", " ")
