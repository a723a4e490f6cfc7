"""What a task is: what a model learns it from, how the model answers, and how its answers are scored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from orrery.errors import UsageError
from orrery.runs.going_on import FOUND
from orrery.schema.registry import Registry, name_of

if TYPE_CHECKING:
    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel
    from orrery.recipes.config import Recipe
    from orrery.scores.resampled import Resampled
    from orrery.tasks.finetuning.findings import Findings

Done = Callable[[int, int], None]
"""Told how many examples are answered, and of how many."""


class Task(ABC):
    """What a model can be asked of texts, or be taught: one file each, ``tasks/NAME.py``.

    A task that can be fine-tuned on is ``Learned``, one that answers is a ``Pipeline``, and most are both. A program
    defines its own and makes it known with ``register``: ``orrery.finetune``, ``orrery.pipeline``, the command line and
    the server then know it.

    Attributes:
        kind: its name, with underscores where users may write hyphens.
        names: what ``orrery.pipeline`` calls it beside its kind, the name in transformers first.
        verb: the verb of the command line that asks a model; of a program's task by default its kind.
        route: the path under which the server answers; of a program's task by default ``/v1/tasks/KIND``.
    """

    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]] = ()
    verb: ClassVar[str] = ""
    route: ClassVar[str] = ""


class Learned(Task, ABC):
    """A task that a model is fine-tuned on: the labelled data, what is learned from them, and the scores at the end.

    Attributes:
        source: the kind of data.
        objective: what is learned from them, unless a flag says another of ``objectives``.
        objectives: all that suit the task; by default the one.
        columns: the settings of the source that name a column or a layer, by the flag that sets each.
        batches: the kind of batches.
        head: the name of the head that is trained; nothing where it is the model's own.
        longest: tokens of a row unless a flag asks for more: attention costs the square.
        whole: the share of the rows that the length leaves whole.
        found_in_recipes: the parts of a recipe that are found from the data and the steps.
        split_by: how a tenth is held back where there is no file to validate on, a value of ``data.split.by``.
        asked_as: the task as which a model is asked that has learned this one, where it is another.
    """

    source: ClassVar[str]
    objective: ClassVar[str]
    objectives: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[str, ...]] = ()
    batches: ClassVar[str] = "padded"
    head: ClassVar[str | None] = None
    longest: ClassVar[int] = 512
    whole: ClassVar[float] = 0.98
    found_in_recipes: ClassVar[tuple[str, ...]] = FOUND
    split_by: ClassVar[str] = "text"
    asked_as: ClassVar[str] = ""

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` of a recipe; without a file to validate on a tenth of the rows is held back."""
        held_back = {"split": {"every": 10, "by": cls.split_by}} if val is None else {"val": val}
        return {"kind": cls.source, "train": train, **held_back, **columns}

    @classmethod
    def learns(cls, stored: "Stored") -> dict[str, Any]:
        """Return the settings of the usual objective that the model to begin from decides."""
        return {}

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the texts of each training row: those that share a row of tokens stand together."""
        return ((text,) for text in source.texts())

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many training rows there are, and how many tokens some of them have.

        Args:
            source: the data, read.
            stored: the model that the run begins from; it has a tokenizer.
            most: about so many rows are looked at, evenly spread.
        """
        rows = list(cls.texts(source))
        some = rows[:: max(1, len(rows) // most)]
        assert stored.tokenizer is not None
        around = len(stored.tokenizer.around([], []).ids)
        columns = [[len(ids) for ids in stored.tokenizer.encode_batch(texts)] for texts in zip(*some, strict=True)]
        return len(rows), [around + sum(counts) for counts in zip(*columns, strict=True)]

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return what is measured while the model learns, beside what the objective names; the first decides."""
        return []

    @classmethod
    def finish(cls, lm: "LanguageModel", source: Any, recipe: "Recipe", done: Done | None = None) -> None:
        """Write beside the model of a finished run what answers need that no step of gradients learns: nothing.

        Args:
            lm: the fine-tuned model, loaded from the folder that this may write into.
            source: the data, read.
            recipe: of the run.
            done: told how far it is.
        """

    @classmethod
    def found(cls, lm: "LanguageModel", source: Any, recipe: "Recipe", done: Done | None = None) -> "Findings":
        """Return what the model of a finished run makes of the examples held back; a task may look at its recipe."""
        return cls.findings(lm, source, recipe.batches.length, done)

    @classmethod
    def beside(
        cls,
        lm: "LanguageModel",
        begun: "Callable[[], LanguageModel]",
        source: Any,
        length: int,
        done: Done | None = None,
    ) -> "Sequence[tuple[str, Resampled]]":
        """Return scores of the model that the run began from, by what it is called, and of how far it is away: none.

        Args:
            lm: the fine-tuned model.
            begun: loads the other.
            source: the data, read.
            length: tokens of a row in training.
            done: told how far it is.
        """
        return ()

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


@runtime_checkable
class BeginsNew(Protocol):
    """A task that makes a model for its data where none is named to begin from."""

    def begins(self, source: Any, steps: int | None = None) -> dict[str, Any]:
        """Return the sections of a recipe beside ``data`` and ``objective``: model, tokenizer, batches, training.

        Args:
            source: the data, read.
            steps: how many are asked for, from which other settings follow.
        """
        ...


TASKS: Registry[Task] = Registry("task", "orrery.tasks")
Kind = TypeVar("Kind", bound=type[Task])


def register(task: Kind) -> Kind:
    """Make a task known under its kind and its names, and return it, so that this may stand before a class.

    Raises:
        UsageError: it has no kind, or one of its names is another task's.
    """
    own = {name_of(task), *task.names}
    if not task.__module__.startswith(f"{TASKS.package}."):  # the package's own are told apart by a test
        for other in (TASKS.find(name) for name in TASKS.names() if name != name_of(task)):
            if taken := sorted(own & {other.kind, *other.names}):
                raise UsageError(f"{taken[0]} is taken: it is a name of the task {other.kind}", "choose another kind")
        if hasattr(task, "answer"):  # a Pipeline, whose module imports this one
            name, said = name_of(task).replace("_", "-"), vars(task)  # what it inherits is another task's
            task.verb, task.route = said.get("verb") or name, said.get("route") or f"/v1/tasks/{name}"
    TASKS.register(task)
    return task


def to_learn(name: str) -> type[Learned]:
    """Return the task to fine-tune on that has a name.

    Raises:
        UsageError: there is none.
    """
    kind = name.replace("-", "_")
    if kind in TASKS.names() and issubclass(task := TASKS.find(kind), Learned):
        return task
    raise TASKS.unknown(kind, learned())


def learned() -> list[str]:
    """Return the names of the tasks that a model can be fine-tuned on, in alphabetical order."""
    return [name for name in TASKS.names() if issubclass(TASKS.find(name), Learned)]
