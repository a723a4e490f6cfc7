"""What a task is: the data that it reads, what it learns from them, and the settings that suit it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.schema.registry import Registry

if TYPE_CHECKING:
    from orrery.finetuning.findings import Findings
    from orrery.language_model.model import LanguageModel

Done = Callable[[int, int], None]
"""Told how many examples are answered, and of how many."""


class Task(ABC):
    """A kind of labelled data that a model is fine-tuned on.

    One file each, ``finetuning/tasks/NAME.py``; a program defines its own and makes it known with ``register``.

    Attributes:
        kind: its name.
        source: the kind of data.
        objective: what is learned from them.
        columns: the settings of the source that name a column or a layer, by the flag that sets each.
        batches: the kind of batches.
        head: the name of the head that is trained; nothing where it is the model's own.
    """

    kind: ClassVar[str]
    source: ClassVar[str]
    objective: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    batches: ClassVar[str] = "padded"
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

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return what is measured while the model learns, beside what the objective names; the first decides."""
        return []

    @classmethod
    @abstractmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Done | None = None) -> "Findings":
        """Return what the model makes of the examples held back; imports what it needs when it is called.

        Args:
            lm: the fine-tuned model.
            source: the data, read.
            length: tokens of a row in training.
            done: told how far it is.
        """


TASKS: Registry[Task] = Registry("task", "orrery.finetuning.tasks")
register = TASKS.register
