"""Classification with any number of labels for a text."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from orrery.finetuning import Task, register
from orrery.finetuning.classification import Classification


@register
class MultiLabel(Task):
    """Any number of labels for each text: a list, or names between commas."""

    kind: ClassVar[str] = "multi_label"
    source = "labelled"
    objective = "multi_label"
    columns = ("text", "pair", "labels")
    head = "sequence"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` with the column of the labels, whose usual name is ``labels``."""
        return super().data(train, val, {"labels": "labels", **columns})

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return Classification.texts(source)
