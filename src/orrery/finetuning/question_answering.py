"""Extractive question answering: the part of a text that answers a question."""

from collections.abc import Iterable
from typing import Any, ClassVar

from orrery.finetuning import Task, register


@register
class QuestionAnswering(Task):
    """The part of a text that answers a question, found by where it begins and where it ends."""

    kind: ClassVar[str] = "question_answering"
    source = "questions"
    objective = "question_answering"
    head = "span"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return each question with its text."""
        return ((row.question, row.context) for row in source.train)
