"""Classification: one label for a text or for two."""

from collections.abc import Iterable
from typing import Any, ClassVar

from orrery.finetuning import Task, register


@register
class Classification(Task):
    """One label of several for each text, or for each pair of texts."""

    kind: ClassVar[str] = "classification"
    source = "labelled"
    objective = "classification"
    columns = ("text", "pair", "label")
    head = "sequence"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return ((row.text,) if row.pair is None else (row.text, row.pair) for row in source.train)
