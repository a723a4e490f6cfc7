"""What the sources of labelled rows share: a split by number, and examples made of encoded rows."""

import hashlib
from abc import ABC
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.data.sources import BatchRequest, Examples, HeldBack, SourceSettings
from orrery.data.splits import held_back
from orrery.errors import DataError
from orrery.schema.numbers import Count, Several
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.data.rows import Row

NAME = "rows"
"""What the rows are called in metrics and tables."""


Record = TypeVar("Record")


class SplitSettings(Section, ABC):
    """One in ``every`` is held back."""

    every: Several


class EverySettings(SplitSettings):
    """Each row whose number, counted from 1, is a multiple of ``every`` is held back."""


class BySettings(SplitSettings):
    """The same by row, or (``by: prompt``) about so many of the first prompts, with every row that begins with one.

    Which prompts these are follows from their sha256 alone, so that data sets which share prompts hold back the same.
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


def divided(settings: RowsSettings, read: Any) -> tuple[list[Any], list[Any]]:
    """Return the records to train on and those held back; ``read`` reads a file.

    Raises:
        DataError: there is none to train on, or a split or a file for validation holds none.
    """
    train: list[Any] = list(read(settings.train))
    others: list[Any] = []
    if settings.split is not None:
        train, others = parted(train, settings.split)
    if settings.val is not None:
        others += list(read(settings.val))
    for source, records in ((settings.train, train), (settings.val or settings.train, others)):
        if not records and (records is train or settings.holds_back):
            hint = "give a file that has some, or hold back fewer (data.split.every, data.val)"
            raise DataError(f"{source}: 0 rows{' to train on' if records is train else ' held back'}", hint)
    return train, others


def parted(records: list[Record], split: SplitSettings) -> tuple[list[Record], list[Record]]:
    """Return the records to train on and those held back, by their numbers or by what they begin with."""
    if getattr(split, "by", "row") == "row":
        return every_nth(records, split.every)
    train: list[Record] = []
    others: list[Record] = []
    for record in records:
        begun: Any = record
        (others if held_back(begun.first_prompt, split.every) else train).append(record)
    return train, others


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
    from orrery.data.rows import PaddedRows, SequentialRows

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
    from orrery.data.row_batches import padding_share

    padding = f"padding: {padding_share(source.lengths, source.batches):.1%} of the positions of the first epoch"
    return Examples(
        train=source,
        held_back=None if windows is None else HeldBack(windows, request.limited(len(windows))),
        tokens={name: tokens},
        batch_tokens=round(tokens / source.batches.per_epoch),
        epochs=lambda step: {name: source.batches.epochs(step)},
        notes=(*notes, padding),
    )
