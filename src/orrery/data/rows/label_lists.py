"""Several labels of a row: a list of them, a text with separators, or a 0 or 1 for each label there is."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orrery.data.files import bad_record
from orrery.data.readers.columns import list_in, truth_of
from orrery.errors import DataError

_TAGS = re.compile(r"(?:<[^<>]+>)+")
"""Stack Overflow's list of tags: <python><pandas>."""
_APART = re.compile(r"(?:[01]\s+)+[01]|(?:[01];)+[01]")


def labels_of(value: Any, separator: str, column: str, where: str) -> list[Any]:
    """Return what stands in the list of a row, in its order; a text may be a list as JSON or Python write it.

    Of an object with a 0 or 1 for each label, as spaCy has them, it is the names of those that have 1; of one with
    ``choices``, as Label Studio has, these.

    Raises:
        DataError: it is no list, or holds what is neither a text nor a number.
    """
    parts = _listed(value, separator) if isinstance(value, str) else value
    if isinstance(parts, Mapping):
        truths = {name: truth_of(given) for name, given in parts.items()}
        if "choices" not in parts and (other := [name for name, truth in truths.items() if truth is None]):
            raise bad_record(where, f"the label {other[0]!r} has {str(parts[other[0]])[:40]!r}, and neither 0 nor 1")
        parts = parts["choices"] if "choices" in parts else [name for name, truth in truths.items() if truth]
    if isinstance(parts, list) and all(isinstance(part, list) and set(map(type, part)) == {str} for part in parts):
        parts = [name for path in parts for name in path]  # paths of categories, as Amazon's products have
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | int) or part in (0, 1) for part in parts):
        raise bad_record(where, f"column {column!r} holds no list of labels: {str(value)[:60]!r}")
    return [part.strip() if isinstance(part, str) else part for part in parts]


def names_of(parts: Iterable[Any]) -> tuple[str, ...]:
    """Return labels by name, each once."""
    return tuple(dict.fromkeys(str(part) for part in parts if str(part)))


def hot_names(parts: Sequence[Any]) -> tuple[str, ...]:
    """Return the places, counted from 0, of what is 1 or true: the labels of a row that says so of each."""
    return tuple(str(place) for place, part in enumerate(parts) if truth_of(part))


def are_hot(lists: Iterable[tuple[str, Sequence[Any]]]) -> bool:
    """Say whether the lists of a table have a 0 or 1 for each label, and no names of labels.

    They do where all have as many, two or more, and nothing else; true and false are never names. Lists of different
    length that repeat a 0 or 1 can be neither.

    Args:
        lists: where each stands, and what is in it.

    Raises:
        DataError: one has another number of values than those before it, or is not alone in its kind.
    """
    rows = [(where, parts) for where, parts in lists if parts]
    truths = [row for row in rows if any(isinstance(part, bool) for part in row[1])]
    plain = [row for row in rows if not all(truth_of(part) is not None for part in row[1])]
    if not truths and (plain or not rows):
        for where, parts in plain:
            if len(parts) == 1 and _APART.fullmatch(str(parts[0])):
                message = f"{where}: {str(parts[0])[:40]!r} looks like a 0 or 1 for each label, with other separators"
                raise DataError(message, "name what stands between them: --data.separator ' '")
        _refuse_other_separators(plain)
        return False
    if truths and plain:
        message = f"{plain[0][0]}: {str(list(plain[0][1]))[:60]}, and true or false for each label at {truths[0][0]}"
        raise DataError(message, "write names in all rows, or as many 0s and 1s")
    first, others = rows[0], [row for row in rows if len(row[1]) != len(rows[0][1])]
    repeated = any(len({_spelt(part) for part in parts}) < len(parts) for _, parts in rows)
    if others and (truths or repeated):
        message = f"{others[0][0]}: {len(others[0][1])} values of 0 and 1, and {len(first[1])} at {first[0]}"
        raise DataError(message, "give every row as many, one for each label, or the names of its labels")
    return bool(truths) or (not others and len(first[1]) > 1)


def _refuse_other_separators(rows: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Raise `DataError` where no row has two labels, and pieces of some, cut otherwise, are labels of others."""
    if any(len(parts) > 1 for _, parts in rows):
        return
    for mark in "|;":
        cut = [(where, [piece.strip() for piece in str(parts[0]).split(mark)]) for where, parts in rows]
        counts = Counter(piece for _, pieces in cut for piece in set(pieces))
        for where, pieces in cut:
            if len(pieces) > 1 and any(counts[piece] > 1 for piece in pieces):
                message = f"{where}: {mark.join(pieces)[:60]!r} looks like several labels with {mark!r} between them"
                raise DataError(message, f"name what stands between them: --data.separator '{mark}'")


def _spelt(part: Any) -> str:
    return str(part).casefold()


def _listed(text: str, separator: str) -> Any:
    """Return a list that a table holds as a text."""
    inner = text.strip()
    if _TAGS.fullmatch(inner):
        return inner[1:-1].split("><")
    if not (inner.startswith("[") and inner.endswith("]")):
        return text.split(separator)
    value = list_in(inner)
    return inner[1:-1].split(separator if separator in inner else None) if value is None else value
