"""What a task is: the data that it reads, what it learns from them, and the settings that suit it."""

from abc import ABC
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from orrery.schema.registry import Registry


class Task(ABC):
    """A kind of labelled data that a model is fine-tuned on.

    One file each, ``finetuning/NAME.py``; a program defines its own and makes it known with ``register``.

    Attributes:
        kind: its name.
        source: the kind of data.
        objective: what is learned from them.
        decides: the metric that decides which model is the best, where it is another than the objective's first.
        columns: the settings of the source that name a column or a layer, by the flag that sets each.
        head: the name of the head that is trained; nothing where it is the model's own.
    """

    kind: ClassVar[str]
    source: ClassVar[str]
    objective: ClassVar[str]
    decides: ClassVar[str | None] = None
    columns: ClassVar[tuple[str, ...]] = ()
    head: ClassVar[str | None] = None

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` of a recipe; without a file to validate on each tenth row is held back."""
        held_back = {"split": {"every": 10}} if val is None else {"val": val}
        return {"kind": cls.source, "train": train, **held_back, **columns}

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the texts of each training row: those that share a row of tokens stand together."""
        return ((text,) for text in source.texts())


TASKS: Registry[Task] = Registry("task", "orrery.finetuning")
register = TASKS.register
