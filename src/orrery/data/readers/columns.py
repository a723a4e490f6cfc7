"""Columns of rows: which there are, and the text or the list in one of them."""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from orrery.data.files import bad_record
from orrery.errors import DataError

TRUTH: Mapping[str, bool] = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
"""How tables write yes and no, in small letters."""
_SHOWN, _NAMED = 80, 5
_SHORT, _COUNTED, _WORDS = 20, 9, 4
_VALUE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?$|__label__")
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9]+"""
_ARRAY = re.compile(rf"\[\s*(?:{_ITEM})(?:\s+(?:{_ITEM}))*\s*\]")


def are_numbers(wanted: tuple[str, ...]) -> bool:
    """Whether columns are asked for by number, from 1, which says that the file has no line of names."""
    return bool(wanted) and all(name.isdecimal() for name in wanted)


def check_columns(where: str, names: Collection[str], wanted: tuple[str, ...]) -> None:
    """Raise `DataError` for a wanted column that is not there, or is there twice, with those that are."""
    for name in wanted:
        if list(names).count(name) == 1:
            continue
        listed = ", ".join(list(names)[:_NAMED])[:_SHOWN] + (", ..." if len(names) > _NAMED else "")
        what = f"{'two columns' if name in names else 'no column'} {name!r}"
        raise DataError(f"{where}: {what}", f"it has {len(names):,} columns: {listed}{_remark(names)}")


def check_names(where: str, names: Collection[str], wanted: tuple[str, ...]) -> None:
    """Raise `DataError` for a name that stands twice, so that a row would lose a value.

    Columns without a name are refused only where all columns are wanted: nobody can ask for one of them.
    """
    counts = Counter(names)
    doubled = next((name for name, count in counts.items() if name and count > 1), None)
    if doubled is not None:
        raise DataError(
            f"{where}: two columns {doubled[:_SHOWN]!r}",
            "name each column once; where the first line is values and no names, choose columns by number: 1, 2, ...",
        )
    if counts[""] > 1 and not wanted:
        raise DataError(f"{where}: {counts['']} columns without a name", "name them, or say which columns you want")


def text_of(row: Mapping[str, Any], column: str, where: str) -> str:
    """Return the text in a column that is there. Raises `DataError` where it is no text that can be written."""
    text = row[column]
    if not isinstance(text, str):
        raise bad_record(where, f"column {column!r} is not a text but {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_record(where, f"column {column!r} has a lone surrogate at character {error.start}") from None
    return text


def truth_of(value: Any) -> bool | None:
    """Return the yes or no that a value is, and nothing for any other."""
    return TRUTH.get(str(value).strip().casefold())


def list_in(text: str) -> list[Any] | None:
    """Return the list that a text is, as JSON, Python or numpy write it; nothing where it is none."""
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return None
    # numpy's before Python's, to which 'a' 'b' is one text.
    for read in (json.loads, _array, ast.literal_eval):
        try:
            value = read(inner)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _array(text: str) -> list[Any]:
    """Return texts or whole numbers with white space between. Raises `ValueError` for anything else."""
    if not _ARRAY.fullmatch(text):
        raise ValueError(text)
    return [ast.literal_eval(item) for item in re.findall(_ITEM, text)]


def are_values(names: Collection[str]) -> bool:
    """Whether what should name columns is a row of values: one is a number, a label of fastText's, or a sentence."""
    return any(_VALUE.match(name) or len(name.split()) > _WORDS for name in names)


def by_number(values: Collection[str]) -> str:
    """Return which number each column has in a table without a line of names."""
    return ", ".join(f"{n} is {value[:_SHORT]!r}" for n, value in enumerate(values, 1) if n <= _COUNTED)


def separated_otherwise(names: Collection[str]) -> str:
    """Return the guess that another mark separates columns of which there is one alone; nothing where none is in it."""
    only = next(iter(names), "") if len(names) == 1 else ""
    mark = next((mark for mark in (";", "\t", ",", "|") if mark in only), None)
    return f" (perhaps {mark!r} separates them: CSV takes commas, .tsv takes tabs)" if mark else ""


def spelling(names: Collection[str]) -> Callable[[str], str | None]:
    """Return what finds the column of a known name: spelt like it, else the first one in other capitals."""
    other = {name.casefold(): name for name in reversed([*names])}
    return lambda known: known if known in names else other.get(known.casefold())


def with_commas(mark: str = ";") -> str:
    """Return a hint with the command that writes a table again, whose columns a mark separates."""
    program = f"import csv, sys; csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter='{mark}'))"
    return f'save it with commas and .csv, or with tabs and .tsv: python -c "{program}" < FILE > NEW.csv'


def _remark(names: Collection[str]) -> str:
    guess = separated_otherwise(names)
    return guess or "; choose one with `column`; 1, 2, ... are the columns of a table without a line of names"
