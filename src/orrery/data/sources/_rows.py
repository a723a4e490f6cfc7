"""What the sources of labelled rows share: what is held back of them, and examples made of encoded rows."""

import hashlib
from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.data.sources import BatchRequest, Examples, HeldBack, SourceSettings
from orrery.data.splits import held_back
from orrery.data.stratified import Classes, divide
from orrery.errors import DataError
from orrery.schema.numbers import Count, Several
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row

NAME = "rows"
"""What the rows are called in metrics and tables."""


Record = TypeVar("Record")


class SplitSettings(Section, ABC):
    """One in ``every`` is held back."""

    every: Several


class EverySettings(SplitSettings):
    """Each row whose number, counted from 1, is a multiple of ``every`` is held back, or (``by: text``) about so many.

    By their texts it is a matter of the sha256 of these, not of the order of the file: equal texts stay together, and
    each label is on both sides where it can be (`orrery.data.stratified`).
    """

    by: Literal["row", "text"] = "row"


class BySettings(SplitSettings):
    """The same by row, or (``by: prompt``) about so many of the first prompts, with every row that begins with one.

    Which prompts these are follows from their sha256 alone, so that data sets which share prompts hold back the same.
    Where that holds back none, or most of the rows, they are held back by their texts.
    """

    by: Literal["row", "prompt"] = "row"


class HeldBackSettings(SourceSettings, ABC):
    """Examples of their own to validate on, or each n-th of those to learn from."""

    val: Any = None
    split: EverySettings | None = None
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0

    @model_validator(mode="after")
    def _one_validation(self) -> "HeldBackSettings":
        if self.val is not None and self.split is not None:
            raise PydanticCustomError("one_of", "val and split exclude each other")
        return self

    @property
    def holds_back(self) -> bool:
        """Whether examples for validation are named."""
        return self.val is not None or self.split is not None


class RowsSettings(HeldBackSettings, ABC):
    """Rows to learn from, and a file of their own or each n-th of them to validate on."""

    train: str
    val: str | None = None

    @property
    def described(self) -> str:
        """The name of the file or set."""
        return self.train

    @property
    def counted(self) -> tuple[str, ...]:
        """The rows."""
        return (NAME,)


Read = Callable[[str], Iterable[Any]]
"""Reads the records of a file or a set."""
ClassesOf = Callable[[Sequence[Any], int], Classes]
"""Returns the labels of records, of which one in so many is held back, where they have some."""


def divided(settings: RowsSettings, read: Read, classes: ClassesOf | None = None) -> tuple[list[Any], list[Any]]:
    """Return the records to train on and those held back; ``read`` reads a file, ``classes`` says what is labelled.

    Raises:
        DataError: there is none to train on, or a split or a file for validation holds none.
    """
    train: list[Any] = list(read(settings.train))
    others: list[Any] = []
    if settings.split is not None and train:
        train, others = parted(train, settings.split, classes)
    if settings.val is not None:
        others += list(read(settings.val))
    for source, records in ((settings.train, train), (settings.val or settings.train, others)):
        if not records and (records is train or settings.holds_back):
            raise nothing(source, settings, len(train) if records is others else None)
    return train, others


def nothing(source: str, settings: HeldBackSettings, trained: int | None) -> DataError:
    """Return the error for a side without rows; ``trained`` counts the others where nothing is held back."""
    if trained is not None and getattr(settings.split, "by", "row") != "row":
        message = f"{source}: of its {trained:,} rows none can be held back that leaves another like it to learn from"
        return DataError(
            message, "give a file to validate on (--val FILE; in a recipe data.val), or two rows of some label"
        )
    hint = "give a file that has some, or hold back fewer (data.split.every, data.val)"
    return DataError(f"{source}: 0 rows{' to train on' if trained is None else ' held back'}", hint)


def unseen(where: str, label: str, known: Iterable[str], settings: HeldBackSettings) -> DataError:
    """Return the error for a label that is held back and never trained on."""
    if settings.split is not None:
        hint = f"hold back by the text, which keeps it: --data.split '{{every: {settings.split.every}, by: text}}'"
    else:
        names = ", ".join(list(known)[:20])
        hint = f"known: {names}; add rows with it to the training file, or leave it out of the one for validation"
    return DataError(f"{where}: the label {label!r} occurs in no training row", hint)


def parted(
    records: list[Record], split: SplitSettings, classes: ClassesOf | None = None
) -> tuple[list[Record], list[Record]]:
    """Return the records to train on and those held back: by their numbers, their texts, or what they begin with."""
    by = getattr(split, "by", "row")
    if by == "row":
        return every_nth(records, split.every)
    rows: Any = records
    held = [held_back(row.first_prompt, split.every) for row in rows] if by == "prompt" else []
    if not 0 < 2 * sum(held) <= len(held):
        held = divide(rows, split.every, classes and classes(records, split.every))
    sides: tuple[list[Record], list[Record]] = ([], [])
    for record, back in zip(records, held, strict=True):
        sides[back].append(record)
    return sides


def every_nth(records: list[Record], every: int) -> tuple[list[Record], list[Record]]:
    """Return the records whose number, counted from 1, is no multiple of ``every``, and those of which it is."""
    return [record for number, record in enumerate(records, start=1) if number % every], records[every - 1 :: every]


def fingerprint_of(records: Iterable[Any]) -> str:
    """Return the sha256 over all records as Python writes them."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(record).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def examples_of(
    request: BatchRequest, train: "Sequence[Row]", held_back: "Sequence[Row]", notes: Sequence[str]
) -> Examples:
    """Return the batches of encoded rows."""
    from orrery.data.batches.padded_rows import PaddedRows, SequentialRows

    source = PaddedRows(train, request.size, request.seed, request.tokens)
    windows = SequentialRows(held_back, request.size, request.tokens) if held_back else None
    return examples_in(request, source, windows, int(source.lengths.sum()), notes)


def examples_in(
    request: BatchRequest, source: Any, windows: Any, tokens: int, notes: Sequence[str], name: str = NAME
) -> Examples:
    """Return batches of like length as examples, with a note on their padding.

    Args:
        request: what was asked for.
        source: batches to learn from, with the ``lengths`` of their rows and their order in ``batches``.
        windows: batches held back, or nothing.
        tokens: what an epoch learns.
        notes: what else is said.
        name: what rows are called in metrics and tables.
    """
    from orrery.data.batches.choosing_rows import padding_share

    padding = f"padding: {padding_share(source.lengths, source.batches):.1%} of the positions of the first epoch"
    return Examples(
        train=source,
        held_back=None if windows is None else HeldBack(windows, request.limited(len(windows))),
        tokens={name: tokens},
        batch_tokens=round(tokens / source.batches.per_epoch),
        epochs=lambda step: {name: source.batches.epochs(step)},
        notes=(*notes, padding),
    )
