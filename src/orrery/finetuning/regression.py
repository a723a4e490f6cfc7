"""Regression: a number for a text or for two."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from orrery.finetuning import Task, register
from orrery.finetuning.classification import Classification


@register
class Regression(Task):
    """A number for each text, or for each pair of texts."""

    kind: ClassVar[str] = "regression"
    source = "labelled"
    objective = "regression"
    columns = ("text", "pair", "number")
    head = "sequence"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` with the column of the number, whose usual name is ``score``."""
        return super().data(train, val, {"number": "score", **columns})

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return Classification.texts(source)
