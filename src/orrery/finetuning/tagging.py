"""Tagging: a label for each word."""

from collections.abc import Iterable
from typing import Any, ClassVar

from orrery.finetuning import Task, register


@register
class Tagging(Task):
    """A label for each word of a sentence: parts of speech, names of people and places."""

    kind: ClassVar[str] = "tagging"
    source = "tagged"
    objective = "tagging"
    columns = ("layer", "words", "tags")
    head = "token"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the sentences."""
        return ((" ".join(sentence.words),) for sentence in source.train)
