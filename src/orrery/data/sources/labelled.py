"""Labelled texts: rows of a table or of JSON lines, each with a text, or two, and what it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orrery.data.documents import unknown_share
from orrery.data.rows.label_notes import label_notes
from orrery.data.rows.labelled import Labelled, counted, find_columns, read_labelled, renamed
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, divided, examples_of, fingerprint_of, unseen
from orrery.data.stratified import Classes, ranges
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row


class LabelledSettings(RowsSettings):
    """Which rows, and their columns; what is not named is found by its name.

    One of ``label`` (one of several), ``labels`` (any number of them: a list, a text cut at ``separator``, or columns
    with a 0 or 1 for each) and ``number`` says what is learned; ``pair`` is a second text; ``names`` gives labels other
    names. Columns named 1, 2, ... are those of a table without a line of names.
    """

    kind: Literal["labelled"] = "labelled"
    text: str | None = None
    pair: str | None = None
    label: str | None = None
    labels: str | tuple[str, ...] | None = None
    number: str | None = None
    separator: str = ","
    names: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_target(self) -> "LabelledSettings":
        if sum(name is not None for name in (self.label, self.labels, self.number)) > 1:
            raise PydanticCustomError("one_of", "at most one of label, labels and number can be named")
        return self


@register
class LabelledSource(Source):
    """Labelled texts; ``labels`` is a number [B], a one for each label [B, N], or the number to be learned [B]."""

    Settings = LabelledSettings
    gives = ("ids", "real", "labels")
    must_be_read = ("labels",)
    batch_kinds = by_tokens = ("padded",)
    needs_tokenizer = gives_text = True

    def __init__(self, train: Sequence[Labelled], held_back: Sequence[Labelled], notes: Sequence[str] = ()) -> None:
        self.train, self.held_back, self.notes = train, held_back, notes

    @classmethod
    def read(cls, settings: LabelledSettings) -> "LabelledSource":
        """Read the rows.

        Raises:
            DataError: a row has no text or no label, all have the same, or one held back has a label of its own.
        """
        named = {name: getattr(settings, name) for name in ("text", "pair", "label", "labels", "number")}
        named["labels"] = ",".join(settings.labels) if isinstance(settings.labels, tuple) else settings.labels

        notes: dict[str, None] = {}

        def read(source: str) -> Iterable[Labelled]:
            columns = find_columns(source, named)
            notes.update({columns.note: None} if columns.unread else {})
            how: dict[str, Any] = {
                "separator": settings.separator,
                "invalid": settings.invalid,
                "skip_bad": settings.skip_bad,
                "tell": lambda said: notes.update({said: None}),
            }
            return (renamed(row, settings.names) for row in read_labelled(source, columns, **how))

        labelled = cls(*divided(settings, read, classes_of), tuple(notes))
        labelled._check(settings)
        return labelled

    def _check(self, settings: LabelledSettings) -> None:
        known, source = self.labels, settings.train
        numbers = isinstance(self.train[0].target, float)
        if not numbers and len(known) < 2 and isinstance(self.train[0].target, str):
            only = next(iter(known), "")
            raise DataError(f"{source}: every row is labelled {only!r}: there is nothing to tell apart", "add others")
        if not numbers and not known:
            raise DataError(f"{source}: no row has a label", "check the column")
        for row in self.held_back:
            names = () if numbers else (row.target,) if isinstance(row.target, str) else row.target
            if unknown := [name for name in names or () if name not in known]:  # type: ignore[union-attr]
                raise unseen(row.where, unknown[0], known, settings)

    @property
    def labels(self) -> Mapping[str, int]:
        """How often each label occurs in training."""
        return counted([row.target for row in self.train])

    @property
    def targets(self) -> Sequence[float]:
        """The numbers of the training rows."""
        return [row.target for row in self.train if isinstance(row.target, float)]

    def remarks(self) -> Sequence[str]:
        """Say which columns are read, how often each label occurs, and what stands on both sides or on one alone."""
        held_back = counted([row.target for row in self.held_back])
        renaming = "data.names gives one the other's name"
        labels = label_notes(self.labels, held_back, "rows", renaming)
        return [*self.notes, *labels, *self._unlabelled(), *super().remarks()]

    def _unlabelled(self) -> list[str]:
        """Say that -1 is among labels or numbers that are else not below 0: data sets write it where there is none."""
        values = [float(name) if name.lstrip("-").isdecimal() else math.nan for name in self.labels] or self.targets
        if -1.0 not in values or not all(value >= 0 for value in values if value != -1.0):
            return []
        return ["warning: -1 is learned like any other; where it says that a row has no label, take those rows away"]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all rows in their order, those held back too."""
        return fingerprint_of((row.text, row.pair, row.target) for row in (*self.train, *self.held_back))

    def texts(self) -> Iterable[str]:
        """Return the texts of the training rows."""
        return (text for row in self.train for text in (row.text, row.pair) if text is not None)

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the rows, cut what is too long and say so, and make batches."""
        train, notes = encoded(request, self.train, "training texts")
        others, more = encoded(request, self.held_back, "texts held back")
        unknown = unknown_share(request.required_tokenizer, [row["ids"] for row in train])
        return examples_of(request, train, others, (*notes, *more, *unknown))


def classes_of(rows: Sequence[Labelled], every: int) -> Classes:
    """Return the labels of rows, or the ranges that their numbers lie in."""
    numbers = [row.target for row in rows if isinstance(row.target, float)]
    return ranges(rows, numbers, every) if len(numbers) == len(rows) else [row.classes for row in rows]


def encoded(request: BatchRequest, rows: Sequence[Labelled], what: str) -> "tuple[list[Row], list[str]]":
    """Return rows as their fields, and what to say: how many texts were cut."""
    from orrery.data.batches.framing import cut_note, fitted

    tokenizer, numbers = request.required_tokenizer, {name: n for n, name in enumerate(request.labels)}
    firsts = tokenizer.encode_batch([row.text for row in rows])
    seconds = tokenizer.encode_batch([row.pair or "" for row in rows])
    fields_of_rows: list[Row] = []
    cut = 0
    for row, first, second in zip(rows, firsts, seconds, strict=True):
        framed, shortened = fitted(tokenizer, first, None if row.pair is None else second, request.length)
        cut += shortened
        fields: dict[str, Any] = {"ids": framed.ids, "labels": _numbered(row, numbers)}
        token_types = {"token_types": framed.token_types} if row.pair is not None and request.token_types > 1 else {}
        fields_of_rows.append({**fields, **token_types})
    return fields_of_rows, cut_note(cut, len(rows), what, request.length)


def _numbered(row: Labelled, numbers: Mapping[str, int]) -> int | float | tuple[float, ...]:
    if isinstance(row.target, float):
        return row.target
    if isinstance(row.target, str):
        return numbers[row.target]
    return tuple(float(name in (row.target or ())) for name in numbers)
