"""What a generated set is: rows or sentences that a function makes, the same on every run of one Python."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from orrery.checkpoints.lock import NAME as LOCK
from orrery.data.readers.columns import check_columns, text_of
from orrery.data.records import Document, Sentence
from orrery.errors import DataError
from orrery.schema.registry import Registry


class GeneratedSet(ABC):
    """A set that is made when it is read, and kept for as long as the process lasts.

    One file each, ``data/generated/NAME.py``; a user writes the name with hyphens.

    Attributes:
        kind: its name.
        what: what it holds, in a few words.
        made_from: where its text comes from, and under which licence that is.
        how: how it is made, and what is left out.
        parts: the names of its parts; the whole name stands for the first.
        columns: of its rows; none where it holds sentences.
        text: the column that is read as text, where a reader wants one.
        label: the column that says what a text is.
        classes: what the numbers in its masks are called, from 0.
    """

    kind: ClassVar[str]
    what: ClassVar[str]
    made_from: ClassVar[str]
    how: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ("train", "val")
    columns: ClassVar[tuple[str, ...]] = ()
    text: ClassVar[str] = "source"
    label: ClassVar[str | None] = None
    classes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def records(self, part: str) -> Iterator[Any]:
        """Yield the rows, a value for each of ``columns``, or the sentences of a part, in their order.

        Raises:
            DataError: what it is made from is missing.
        """


GENERATED: Registry[GeneratedSet] = Registry("generated data set", "orrery.data.generated")
register = GENERATED.register


@dataclass(frozen=True)
class Made:
    """One part of a generated set, found by its name."""

    set: GeneratedSet
    part: str

    @property
    def name(self) -> str:
        """What a user writes: ``docstring-summaries/val``."""
        return f"{_written(self.set.kind)}/{self.part}"

    def rows(self, columns: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (place, row), with all columns or those asked for.

        Raises:
            DataError: a column is not there, or the set holds sentences.
        """
        if not self.set.columns:
            raise DataError(f"{self.name}: it holds sentences, no rows", "read it as tagged sentences")
        check_columns(self.name, self.set.columns, tuple(columns))
        for number, row in enumerate(_records(type(self.set), self.part), start=1):
            yield f"{self.name}:{number}", {name: row[name] for name in columns or self.set.columns}

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences.

        Raises:
            DataError: the set holds rows.
        """
        if self.set.columns:
            raise DataError(f"{self.name}: it holds rows, no sentences", f"its columns: {', '.join(self.set.columns)}")
        yield from _records(type(self.set), self.part)

    def column(self, name: str) -> str:
        """Return the column that is read as text: the one asked for, or the set's own where that is ``text``."""
        return self.set.text if name == "text" else name

    def documents(self, column: str = "text") -> Iterator[Document]:
        """Yield the texts of a column, or of the sentences."""
        if not self.set.columns:
            yield from (Document(f"{self.name}:{n}", s.text) for n, s in enumerate(self.sentences(), start=1))
            return
        column = self.column(column)
        for where, row in self.rows((column,)):
            yield Document(where, text_of(row, column, where))


def names() -> list[str]:
    """Return the names of all generated sets, as users write them."""
    return [_written(kind) for kind in GENERATED.names()]


def find(source: str | Path) -> Made | None:
    """Return the generated set, or the part of one, that a source names; nothing where it names none.

    A file or folder of this name goes before it; the folder of a run does not, which a training may just have made.

    Raises:
        DataError: the set has no such part.
    """
    name, _, part = str(source).partition("/")
    if name not in names() or _is_data(Path(source)):
        return None
    generated = GENERATED.find(name.replace("-", "_"))()
    if part and part not in generated.parts:
        raise DataError(
            f"{source}: no such part", f"it has: {', '.join(f'{name}/{known}' for known in generated.parts)}"
        )
    return Made(generated, part or generated.parts[0])


RUN = "run.json"
"""What makes a folder a run's."""


def _is_data(path: Path) -> bool:
    """Say whether a path holds data: a file, or a folder with something that is no run's."""
    if not path.is_dir():
        return path.exists()
    return not (path / RUN).exists() and any(entry.name != LOCK for entry in path.iterdir())


def table() -> str:
    """Return the sets as a Markdown table, as docs/data.md shows it."""
    rows = ["| set | what | parts | made from | how |", "|---|---|---|---|---|"]
    for name in names():
        generated = GENERATED.find(name.replace("-", "_"))
        rows.append(
            f"| `{name}` | {generated.what} | {', '.join(generated.parts)} | {generated.made_from} | {generated.how} |"
        )
    return "\n".join(rows) + "\n"


def _written(kind: str) -> str:
    return kind.replace("_", "-")


@cache
def _records(kind: type[GeneratedSet], part: str) -> tuple[Any, ...]:
    """Return what a part holds; making some takes seconds."""
    return tuple(kind().records(part))
