"""Lines that hold their labels, as fastText's do; those of others are named, with the command that makes a table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, Invalid, read_lines
from orrery.errors import DataError

_BLANK = r"[ \t\v\f\r\0]"
_LABEL = re.compile(rf"(?:^|(?<={_BLANK}))__label__({_BLANK.replace('[', '[^')}+){_BLANK}*")
"""A label of fastText's, and the blanks behind it: a word with its usual prefix, wherever it stands in the line."""


def _table(call: str, text: int, label: int) -> str:
    """Return the command that writes what a call makes of each line as a table, and its columns."""
    program = f"import re, sys; [print(*{call}, sep='\\t') for each in sys.stdin]"
    return f'python -c "{program}" < FILE > NEW.tsv; then --data.text {text} --data.label {label}'


OTHERS = (
    (
        r"[^\t]+\t",
        "fields between tabs",
        "name a copy .tsv; where no line names its columns --data.text N --data.label N count them",
    ),
    (
        r"[-+0-9.,]*(?: [0-9]+:[-+0-9.e]+)+\s*$",
        "numbers of words, as in LIBSVM's files, and an encoder reads texts",
        "give a table with the texts",
    ),
    (
        r"[A-Z]+:[A-Za-z]+ ",
        "a class before each text, as in TREC's questions",
        _table("each.strip().split(' ', 1)", 2, 1),
    ),
    (
        r"\([0-9]+ ",
        "trees of phrases, as in the Stanford Sentiment Treebank",
        _table(r"(each[1], re.sub(r'\([0-9]+ |\)', '', each).strip())", 1, 2),
    ),
    (r".*;\S+$", "a label behind the last ';'", _table("each.strip().rsplit(';', 1)", 1, 2)),
    (r".*@\S+$", "a label behind the last '@'", _table("each.strip().rsplit('@', 1)", 1, 2)),
)
"""How the first line of other files begins, what it has, and what makes rows of them."""


def read_labelled_lines(file: Path, invalid: Invalid, skip_bad: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) of fastText's lines: a text, and its labels as a list.

    Raises:
        DataError: the first line has no label.
    """
    faults, known = Faults(invalid, skip_bad), False
    for line in read_lines(file):
        try:
            text = line.text(invalid)
        except DataError as error:
            faults.meet(error)
            continue
        if not text.strip():
            continue
        known = known or bool(_LABEL.search(text)) or _refused(file, text)
        yield line.where, {"text": _LABEL.sub("", text).strip(), "labels": _LABEL.findall(text)}


def _refused(file: Path, text: str) -> bool:
    """Raise `DataError` for a line without a label of fastText's."""
    for begins, what, hint in OTHERS:
        if re.match(begins, text):
            raise DataError(f"{file}: lines with {what}", hint)
    hint = "write __label__NAME before each text, or name a table with a text and a label a row: .csv, .tsv, .jsonl"
    raise DataError(f"{file}: a text whose lines have no labels", hint)
