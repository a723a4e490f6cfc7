"""Texts with labels: the columns of a table that hold them, and each row as what a classifier learns from."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from orrery.data import generated, sets
from orrery.data.files import Invalid, bad_record, kept
from orrery.data.readers.columns import (
    are_numbers,
    are_values,
    by_number,
    check_columns,
    separated_otherwise,
    spelling,
    text_of,
    truth_of,
    with_commas,
)
from orrery.data.rows.annotated import ANSWER, counting, is_answered, is_task, told
from orrery.data.rows.label_lists import are_hot, hot_names, labels_of, names_of
from orrery.data.rows.text_folders import read_labelled_rows
from orrery.errors import DataError

logger = logging.getLogger(__name__)

PAIRS = (
    ("text", "text_pair"), ("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"),
    ("question", "sentence"), ("question", "passage"), ("query", "passage"), ("query", "document"),
    ("query", "positive"), ("anchor", "positive"), ("#1 String", "#2 String"),
)  # fmt: skip
"""Names of two columns whose texts belong together."""

TEXTS = (
    "text", "sentence", "content", "review", "comment", "question", "query", "utterance", "message", "tweet", "title",
    "headline",
    "document", "body", "description", "input", "comment_text",
    "reviewText", "review_body",
)  # fmt: skip
"""Names of a column with a text, the likeliest first."""

LABELS = (
    "label", "labels", "category", "class", "intent", "sentiment", "topic", "target", "tag", "tags", "score", "stars",
    "rating", "gold_label", "emotion", "output", "cats", "accept", "is_duplicate", "Quality", "overall", "star_rating",
)  # fmt: skip
"""Names of a column with what a text is, the likeliest first."""

UNDECIDED = ("gold_label", "-")
"""SNLI's and MultiNLI's column, and what they write there where their annotators disagreed; elsewhere it is a label."""

Kind = Literal["label", "labels", "number"]
"""What a row is labelled with: one label, several or none, a number."""

Target = str | tuple[str, ...] | float


@dataclass(frozen=True)
class Columns:
    """The columns of a table: the text, the one that belongs to it, and the label, where there are any.

    ``hot`` says that lists of labels have a 0 or 1 for each label there is; ``wide`` are the columns of a table
    that has one for each; ``whole`` says that rows are those of annotators' tools; ``unread`` are the other columns.
    """

    text: str
    pair: str | None
    label: str | None
    kind: Kind = "label"
    hot: bool = False
    wide: tuple[str, ...] = ()
    whole: bool = False
    unread: tuple[str, ...] = field(default=(), compare=False)

    @property
    def note(self) -> str:
        """Which columns are read, and which are not."""
        pair = f" and {self.pair}" if self.pair else ""
        return f"columns: text {self.text}{pair}, {self.kind} {self.label}; not read: {', '.join(self.unread)[:200]}"

    @property
    def wanted(self) -> tuple[str, ...]:
        """All of them."""
        labels = self.wide or (self.label,)
        return tuple(name for name in (self.text, self.pair, *labels) if name is not None)


@dataclass(frozen=True)
class Labelled:
    """One row: where it stands, its text, the second text where there is one, and what it is."""

    where: str
    text: str
    pair: str | None
    target: Target | None

    @property
    def parts(self) -> tuple[str, ...]:
        """The text, or both."""
        return (self.text,) if self.pair is None else (self.text, self.pair)

    @property
    def whole(self) -> tuple[str, ...]:
        """The same."""
        return self.parts

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels; none where it has a number."""
        return (self.target,) if isinstance(self.target, str) else self.target if isinstance(self.target, tuple) else ()


def find_columns(source: str | Path, columns_given: Mapping[str, str | None], *, labelled: bool = True) -> Columns:
    """Return the columns that hold texts and labels: those asked for, else by their names.

    Args:
        source: a table, JSON lines, Parquet, or a named set.
        columns_given: for ``text``, ``pair`` and one of ``label``, ``labels`` and ``number`` a column or nothing; for
            ``labels`` also several columns with commas between, each with a 0 or 1 for the label of its name.
        labelled: whether there has to be a label.

    Raises:
        DataError: a column is not there, or cannot be told from the names.
    """
    kind: Kind = next((k for k in ("label", "labels", "number") if columns_given.get(k)), "label")
    text, pair, label = columns_given.get("text"), columns_given.get("pair"), columns_given.get(kind)
    name = str(source).partition("/")[0]
    if name in sets.SETS and not Path(source).exists():
        text, label = text or sets.SETS[name].column, label or sets.SETS[name].label
    elif made := generated.find(source):
        text, label = text or (made.set.text if made.set.label else None), label or made.set.label
    wide = tuple(map(str.strip, label.split(","))) if kind == "labels" and label and "," in label else ()
    first, whole = _first(source, tuple(name for name in (text, pair, *(wide or (label,))) if name))
    names, wide = list(first), () if label in first else wide
    spelt = spelling(names)
    if kind == "labels" and not wide and label not in names:
        _refuse_without_labels(source, first, str(label))
    check_columns(str(source), names, tuple(name for name in (text, pair, *(wide or (label,))) if name))
    if text is None and pair is None:
        text, pair = next((both for one, other in PAIRS if all(both := (spelt(one), spelt(other)))), (None, None))
    label = label or next((own for own in map(spelt, LABELS) if own and own not in (text, pair)), None)
    text = text or next((own for own in map(spelt, TEXTS) if own and own not in (label, pair)), None)
    rest = [known for known in names if known not in (text, pair, label)]
    if len(names) == 2 and len(rest) == 1:
        text, label = text or rest[0], label or rest[0]
    if text is None or (labelled and label is None):
        what = "the text" if text is None else "the label"
        hint = "name it: --data.text COLUMN, --data.label COLUMN (1, 2, ... in a table without a line of names)"
        hint += f"; the first line looks like values: {by_number(names)}" if are_values(names) else ""
        if guess := separated_otherwise(names):
            hint = with_commas() if ";" in guess else "save it with commas and .csv, or with tabs and .tsv"
        raise DataError(f"{source}: no column is known to hold {what} among {', '.join(names)[:200]}{guess}", hint)
    unread = tuple(name for name in names if name and name not in (text, pair, label, *wide))
    return Columns(text, pair, label, kind, wide=wide, whole=whole and label != ANSWER, unread=unread)


def _refuse_without_labels(source: str | Path, first: Mapping[str, Any], label: str) -> None:
    """Raise `DataError` where the column of labels is not there, and several columns have a 0 or 1."""
    if len(wide := [each for each in first if truth_of(first[each]) is not None and each not in ("id", "index")]) > 1:
        hint = f"name those that have a 0 or 1 for each label: --data.labels {','.join(wide)}"
        raise DataError(f"{source}: no column {label!r} among {', '.join(first)[:200]}", hint)


def read_labelled(
    source: str | Path,
    columns: Columns,
    *,
    separator: str = ",",
    invalid: Invalid = "error",
    skip_bad: int = 0,
    tell: Callable[[str], None] = logger.warning,
) -> Iterator[Labelled]:
    """Yield the rows of a source; ``tell`` takes what is said of those that annotators left out.

    Raises:
        DataError: a row without a text or a label, or with a number that is none; its line is named.
    """
    how: dict[str, Any] = {"invalid": invalid, "skip_bad": skip_bad}
    if columns.kind == "labels" and not columns.wide:
        columns = replace(columns, hot=are_hot(_lists(source, columns, separator, how)))
    tally: Counter[str] = Counter()
    yield from kept(
        _rows(source, columns, how, tally), lambda where, row: _labelled(where, row, columns, separator), skip_bad
    )
    if said := told(tally):
        tell(f"{source}{said}")


def _rows(
    source: str | Path, columns: Columns, how: Mapping[str, Any], tally: Counter[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield rows; what has a column for each label has them in one, as an object."""
    for where, row in read_labelled_rows(source, () if columns.whole else columns.wanted, **how):
        counted_row = counting(row, tally) if columns.whole else row
        if counted_row is not None:
            wide = {str(columns.label): {name: row[name] for name in columns.wide}} if columns.wide else {}
            yield where, {**counted_row, **wide}


def _lists(
    source: str | Path, columns: Columns, separator: str, how: Mapping[str, Any]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield what stands in the lists of labels; rows that have none are told of where they are read."""
    column = str(columns.label)
    for where, row in _rows(source, columns, how, Counter()):
        with suppress(DataError):
            yield where, labels_of(row.get(column), separator, column, where)


def renamed(row: Labelled, names: Mapping[str, str]) -> Labelled:
    """Return a row whose labels have other names, where some are given."""
    if isinstance(row.target, str):
        return replace(row, target=names.get(row.target, row.target))
    if isinstance(row.target, tuple):
        return replace(row, target=tuple(names.get(name, name) for name in row.target))
    return row


def counted(targets: Sequence[Target | None]) -> dict[str, int]:
    """Return how often each label occurs, in the order of their numbers: those of digits by value, others by name."""
    counts: dict[str, int] = {}
    for target in targets:
        for name in (target,) if isinstance(target, str) else target if isinstance(target, tuple) else ():
            counts[name] = counts.get(name, 0) + 1
    digits = all(name.isdecimal() for name in counts)
    return {name: counts[name] for name in sorted(counts, key=(lambda n: (int(n), n)) if digits else None)}


def _first(source: str | Path, wanted: tuple[str, ...]) -> tuple[Mapping[str, Any], bool]:
    """Return the first row of a source with all its columns, and whether it is one of annotators' tools."""
    numbers = wanted if are_numbers(wanted) else ()
    for _, row in read_labelled_rows(source, numbers):
        if (counted_row := counting(row, Counter()) if is_task(row) else row) is not None:
            return counted_row, is_task(row) or is_answered(row)
    if numbers:
        return {}, False
    raise DataError(f"{source}: 0 rows", "check that the file was written whole")


def _labelled(where: str, row: Mapping[str, Any], columns: Columns, separator: str) -> Labelled:
    check_columns(where, row, (*columns.wanted[: 1 + bool(columns.pair)], *([columns.label] if columns.label else [])))
    texts = [text_of(row, name, where) for name in (columns.text, columns.pair) if name is not None]
    if empty := [name for name, text in zip(columns.wanted, texts, strict=False) if not text.strip()]:
        raise bad_record(where, f"column {empty[0]!r} is empty")
    target = None if columns.label is None else _target(where, row[columns.label], columns, separator)
    return Labelled(where, texts[0], texts[1] if len(texts) > 1 else None, target)


def _target(where: str, value: Any, columns: Columns, separator: str) -> Target:
    if columns.kind == "labels":
        parts = labels_of(value, separator, str(columns.label), where)
        return hot_names(parts) if columns.hot else names_of(parts)
    if columns.kind == "number":
        return _number(where, value, columns)
    if isinstance(value, float) and not math.isfinite(value):
        raise bad_record(where, f"column {columns.label!r} is {value}, which is no label")
    if isinstance(value, list | tuple | Mapping):
        value = _only(where, names_of(labels_of(value, separator, str(columns.label), where)), columns)
    said = str(value).strip()
    if not isinstance(value, str | int | float) or not said or (columns.label, said) == UNDECIDED:
        raise bad_record(where, f"column {columns.label!r} has no label: {str(value)[:60]!r}")
    return said


def _only(where: str, names: Sequence[str], columns: Columns) -> str:
    """Return the one label of a list. Raises `DataError` where it has more or none."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise bad_record(where, f"column {columns.label!r} has no label")
    message = f"{where}: column {columns.label!r} has {len(names)} labels: {', '.join(names)[:60]}"
    raise DataError(
        message,
        "learn them all: `orrery finetune multi-label --from MODEL --train FILE`, "
        f"or of thousands many-labels with --data.labels {columns.label}; or leave the row out",
    )


def _number(where: str, value: Any, columns: Columns) -> float:
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        raise bad_record(where, f"column {columns.label!r} is no number: {str(value)[:60]!r}") from None
    if not math.isfinite(number):
        raise bad_record(where, f"column {columns.label!r} is {value}, and no number to learn")
    return number
