"""What a task is: texts into rows of ids, a model over a batch of rows, and its answer as plain Python."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, islice
from typing import Any, ClassVar

import torch
from pydantic import Field, ValidationError

from orrery.errors import DataError, UsageError
from orrery.generation.batched import in_batches
from orrery.language_model.model import LanguageModel
from orrery.models.default_device import on_cpu_by_default
from orrery.reports.status import waiting
from orrery.schema.section import Section
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import Done, Task
from orrery.tasks._task import register as register


class PipelineSettings(Section, ABC):
    """What a task can be told, when it is made or when it is called.

    ``head`` names one of the model's heads; ``truncation`` cuts what is longer than the model's context.
    """

    head: str | None = Field(None, description="The head of the model that answers, by its name.")
    truncation: bool = Field(False, description="Cut texts that are longer than the context.")


class Pipeline(Task, ABC):
    """A task that is asked of one model: a text, a list of texts or a generator of texts in, an answer for each out.

    Rows of all texts are computed ``batch_size`` at once, those of like length together, which changes no answer.

    Attributes:
        Settings: what it can be told.
        fields: what an input consists of: a text, or several texts by these names.
        said: what its answer is called beside the input, in lines of JSON and over HTTP.
        titled: whether the command line shows each of several inputs before its answer.
    """

    Settings: ClassVar[type[Section]] = PipelineSettings
    fields: ClassVar[tuple[str, ...]] = ("text",)
    said: ClassVar[str] = "answer"
    titled: ClassVar[bool] = False

    def __init__(self, lm: LanguageModel, task: str, batch_size: int = 1, **settings: Any) -> None:
        self.lm, self.task, self.batch_size = lm, task, batch_size
        self.given = settings
        self.chosen({})

    @abstractmethod
    def rows(self, item: Any, settings: Any) -> Sequence[Any]:
        """Return the rows that the model reads for one text: ``InputRow``, or a dataclass with ``ids`` and ``number``.

        Raises:
            UsageError: what is given is no input of this task, or longer than the context.
            DataError: a text that has no ids.
        """

    @abstractmethod
    def ask(self, rows: Sequence[Any], settings: Any) -> Sequence[Any]:
        """Return what the model says of each row of a batch; gradients are off."""

    @abstractmethod
    def answer(self, item: Any, rows: Sequence[Any], outputs: Sequence[Any], settings: Any) -> Any:
        """Return the answer for one text, given what the model says of its rows."""

    @classmethod
    def from_client(cls, item: Any) -> Any:
        """Return what a client of the server has sent, as an input.

        Raises:
            UsageError: it means something of the server's machine, such as a path.
        """
        return item

    @classmethod
    def fits(cls, lm: LanguageModel) -> bool:
        """Say whether a model can be asked this: whether it has the head, and writes where it must."""
        return True

    def told(self, answer: Any) -> Any:
        """Return what is told of an answer in JSON; ``None`` is the answer to an input without a text."""
        return answer

    def lines(self, item: Any, answer: Any) -> Iterable[str]:
        """Return how the command line shows an answer; ``None`` is that to an input without a text."""
        if answer is None:
            yield NO_TEXT
        else:
            yield answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def is_many(self, inputs: Any) -> bool:
        """Say whether what is given is a list of inputs, and no single one."""
        return isinstance(inputs, list)

    @on_cpu_by_default
    def __call__(
        self,
        inputs: Any,
        *,
        batch_size: int | None = None,
        done: Done | None = None,
        names: Sequence[str] | None = None,
        **settings: Any,
    ) -> Any:
        """Return the answer for one text, a list of answers for a list, a generator of them for a generator.

        Args:
            inputs: what the task reads.
            batch_size: rows computed at once; by default the pipeline's own.
            done: told how many rows are done; by default a terminal shows it after two seconds.
            names: what errors call each of a list; by default ``input 3``.
            settings: those of ``Settings``, for this call.

        Raises:
            UsageError: a setting that the task lacks, or an input that is none of its kind.
        """
        chosen = self.chosen(settings)
        size = self.batch_size if batch_size is None else batch_size
        if isinstance(inputs, Iterator):
            return self._lazily(inputs, chosen, size)
        if not self.is_many(inputs):
            return self.answers([inputs], chosen, size, done, names=[""])[0]
        return self.answers(list(inputs), chosen, size, done, names=names)

    @on_cpu_by_default
    def several(self, items: Sequence[Any], names: Sequence[str] | None = None, done: Done | None = None) -> list[Any]:
        """Return the answers to several inputs, as a list however many there are; arguments as above."""
        return self.answers(items, self.chosen({}), self.batch_size, done, names=names)

    def chosen(self, settings: Mapping[str, Any]) -> Any:
        """Return the settings of a call, checked.

        Raises:
            UsageError: one that the task lacks or a value that it cannot have.
        """
        try:
            return self.Settings.model_validate({**self.given, **settings})
        except ValidationError as error:
            faults = [f"{_place(fault)}: {fault['msg']}" for fault in error.errors()]
            hint = f"settings: {', '.join(self.Settings.model_fields)}"
            raise UsageError(f"{self.task}: {'; '.join(faults[:3])}", hint) from None

    def answers(
        self,
        items: Sequence[Any],
        settings: Any,
        batch_size: int,
        done: Done | None = None,
        first: int = 0,
        names: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return the answer for each of several texts; ``first`` is the number of the first of them."""
        names = [f"input {first + n + 1}" for n in range(len(items))] if names is None else names
        rows = [self._rows(item, settings, name) for item, name in zip(items, names, strict=True)]
        flat = [replace(row, number=first + n) for n, some in enumerate(rows) for row in some]
        with nullcontext(done) if done is not None else _shown(self.task) as say, torch.no_grad():
            outputs = iter(
                in_batches(
                    [len(row.ids) for row in flat],
                    batch_size,
                    lambda numbers: self.ask([flat[n] for n in numbers], settings),
                    lambda count: say(count, len(flat)),
                )
            )
        parts = [list(islice(outputs, len(some))) for some in rows]
        return [self.answer(*one, settings) for one in zip(items, rows, parts, strict=True)]

    def _rows(self, item: Any, settings: Any, name: str) -> Sequence[Any]:
        """Return the rows of one text; an error says which of several it is."""
        try:
            return self.rows(item, settings)
        except (UsageError, DataError) as error:
            if not name:
                raise
            raise type(error)(f"{name}: {error.message}", error.hint) from None

    def _lazily(self, inputs: Iterator[Any], settings: Any, batch_size: int) -> Iterator[Any]:
        """Yield the answers one batch of texts after the other, as they are asked for."""
        first = 0
        while some := list(islice(inputs, max(1, batch_size))):
            yield from self.answers(some, settings, batch_size, lambda count, total: None, first)
            first += len(some)


def _place(fault: Any) -> str:
    """Return the setting that a fault is about."""
    return ".".join(map(str, fault["loc"])) or str(fault.get("ctx", {}).get("key", "settings"))


@contextmanager
def _shown(task: str) -> Iterator[Done]:
    """Yield what says how far the work is: on a terminal, once it has taken two seconds."""
    if not sys.stderr.isatty():
        yield lambda count, total: None
        return
    with waiting() as line:
        line.now(task)
        yield lambda count, total: line.now(f"{task}: {count:,} of {total:,}")


def text_of(item: Any, task: str) -> str:
    """Return what is given, if it is a text.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(item, str):
        raise UsageError(f"{task} reads texts, and was given a {type(item).__name__}", "give a text, or a list of them")
    return item


def field_of(item: Mapping[str, Any], name: str, task: str) -> str:
    """Return a text of an input that has several by name.

    Raises:
        UsageError: it is missing, or no text.
    """
    value = item.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{task}: {name} is {value!r:.60}, and no text", f"give {{{name!r}: '...'}}")
    return value


def refuse_other_fields(item: Mapping[str, Any], known: Iterable[str], task: str) -> None:
    """Refuse what an input of several texts says beside them.

    Raises:
        UsageError: it has another field.
    """
    if others := sorted(set(item) - set(known), key=str):
        names = ", ".join(chain(known))
        raise UsageError(f"{task} does not know the field {str(others[0])[:60]!r}", f"it reads: {names}")
