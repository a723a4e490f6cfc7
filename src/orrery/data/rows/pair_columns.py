"""Pairs from the columns of a table: which of them hold source and target, and each row as a pair."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from orrery.data import formats, sets
from orrery.data.corpora import read_placed_rows
from orrery.data.files import Invalid, bad_record, kept
from orrery.data.readers.columns import are_numbers, check_columns, spelling, text_of
from orrery.data.records import Pair
from orrery.errors import DataError

KNOWN = (
    ("source", "target"), ("src", "tgt"), ("document", "summary"), ("article", "highlights"), ("article", "summary"),
    ("dialogue", "summary"), ("text", "summary"), ("text", "target"), ("body", "title"), ("input_text", "target_text"),
    ("en", "de"), ("en", "fr"), ("english", "german"), ("instruction", "output"), ("input", "output"),
    ("instruction", "response"), ("prompt", "completion"), ("question", "answer"),
)  # fmt: skip
"""Names of two columns of which the second is written from the first, the likeliest first."""

NESTED = "translation"
"""The column that holds all languages of a row by their names, as the library `datasets` has them."""


def find_pair_columns(
    source: str | Path,
    named: Mapping[str, str | None],
    known: Sequence[tuple[str, str]] = KNOWN,
    flags: tuple[str, str] = ("--data.columns.source", "--data.columns.target"),
) -> tuple[str, str]:
    """Return the two columns of a pair: those asked for, a named set's own, or by their names.

    Of a table with two columns the one that is not asked for is the other.

    Args:
        source: a table, JSON lines, Parquet, or a named set.
        named: the columns that are asked for, by the last word of ``flags``.
        known: names of two columns, the likeliest first.
        flags: those that name the columns.

    Raises:
        DataError: a column is not there, or cannot be told from the names.
    """
    sides = [flag.rpartition(".")[2] for flag in flags]
    first, second = (named.get(side) for side in sides)
    own = _own_columns(source)
    if first and second:
        return first, second
    if own and not first and not second:
        return own
    wanted = tuple(filter(None, (first, second)))
    names = names_of_columns(source, wanted)
    check_columns(str(source), names, wanted)
    spelt = spelling(names)
    for left, right in (own, *known) if own else known:
        one, other = first or spelt(left), second or spelt(right)
        if one and other and one != other:
            return one, other
    rest = [name for name in names if name not in wanted]
    if len(names) == 2 and len(rest) == 1:
        return first or rest[0], second or rest[0]
    what = " and ".join(side for side, name in zip(sides, (first, second), strict=True) if not name)
    hint = f"name them: {' '.join(f'{flag} COLUMN' for flag in flags)} (1, 2, ... without a line of names)"
    raise DataError(f"{source}: no columns are known to hold {what} among {', '.join(names)[:200]}", hint)


def read_column_pairs(
    source: str | Path,
    columns: tuple[str, str],
    *,
    graded: tuple[str, Callable[[str, Any], bool]] | None = None,
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[Pair]:
    """Yield the rows of a table, JSON lines, Parquet or a named set as pairs.

    Of a list of texts, sources are joined by a blank; of targets the first is the pair's, the others its references.

    Args:
        source: the table or the name.
        columns: those of the two sides.
        graded: a column, and what says from a row's place and its value there whether the row is a pair at all.
        invalid: what to do with bytes that are no UTF-8.
        skip_bad: so many bad rows are left out.

    Raises:
        DataError: a column is not there, or a row has no source or no target; its line is named.
    """
    wanted = (*columns, *([] if graded is None else [graded[0]]))
    how: dict[str, Any] = {"invalid": invalid, "skip_bad": skip_bad}
    asked = () if _nests(source, wanted, how) else wanted

    def pair(where: str, row: Mapping[str, Any]) -> Pair | None:
        if graded is not None and not graded[1](where, row[graded[0]]):
            return None
        row = _flat(row)
        check_columns(where, row, wanted)
        sources, targets = (_texts(row, name, where) for name in columns)
        return Pair(int(where.rpartition(":")[2]), " ".join(sources), targets[0], tuple(targets[1:]))

    found = kept(read_placed_rows(source, asked, **how), pair, skip_bad)
    yield from (each for each in found if each is not None)


def files_by_language(source: str | Path) -> dict[str, Path]:
    """Return the files of parallel text that a name without its last part means: ``train`` for train.en and train.de.

    Nothing where there is something of that name, or fewer than two such files; .gz, .xz or .bz2 may stand behind them.
    """
    path = Path(source)
    if path.exists() or not path.parent.is_dir():
        return {}
    near = sorted(file for file in path.parent.iterdir() if file.name.startswith(f"{path.name}.") and file.is_file())
    packed = re.compile(rf"({'|'.join(map(re.escape, formats.COMPRESSED))})$")
    found = {packed.sub("", file.name.removeprefix(f"{path.name}.")): file for file in near}
    own = {
        name: file
        for name, file in found.items()
        if re.fullmatch(r"[A-Za-z]{2,3}([_-]\w+)*", name) and f".{name}" not in formats.ROWS
    }
    own.pop("txt", None)
    return own if len(own) > 1 else {}


def spread(pairs: Sequence[Pair]) -> list[Pair]:
    """Return a pair for each target that a source has, as they are trained on."""
    return [replace(pair, target=target, references=()) for pair in pairs for target in (pair.target, *pair.references)]


def _nests(source: str | Path, wanted: tuple[str, ...], how: Mapping[str, Any]) -> bool:
    """Say whether the sides of a source are the parts of one column."""
    if are_numbers(wanted):
        return False
    return any(isinstance(row.get(NESTED), Mapping) for _, row in islice(read_placed_rows(source, **how), 1))


def _flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with the languages of a translation as columns."""
    sides = row.get(NESTED)
    return (
        {**{name: value for name, value in row.items() if name != NESTED}, **sides}
        if isinstance(sides, Mapping)
        else row
    )


def _texts(row: Mapping[str, Any], column: str, where: str) -> list[str]:
    """Return the texts in a column, one or a list of them."""
    value = row[column]
    items = value if isinstance(value, list | tuple) else [value]
    texts = [text_of({column: item}, column, where) for item in items]
    if not texts or not all(text.strip() for text in texts):
        raise bad_record(where, f"column {column!r} {'is empty' if len(texts) < 2 else 'has an empty text'}")
    return texts


def _own_columns(source: str | Path) -> tuple[str, str] | None:
    """Return the columns that a named set says are its pairs."""
    name = str(source).partition("/")[0]
    if name not in sets.SETS or Path(source).exists():
        return None
    columns = sets.SETS[name].columns
    return (columns["source"], columns["target"]) if columns else None


def names_of_columns(
    source: str | Path, wanted: tuple[str, ...], *, invalid: Invalid = "error", skip_bad: int = 0
) -> list[str]:
    """Return the columns of the first row; those of a table without a line of names where numbers are wanted.

    Raises:
        DataError: there is no row.
    """
    if files := files_by_language(source):
        return list(files)
    numbers = wanted if wanted and all(name.isdecimal() for name in wanted) else ()
    for _, row in read_placed_rows(source, numbers, invalid=invalid, skip_bad=skip_bad):
        return list(_flat(row))
    raise DataError(f"{source}: 0 rows", "check that the file was written whole")
