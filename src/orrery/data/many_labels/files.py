"""Published layouts of texts with many labels: the XMLRepository's two, PECOS' folders, and AttentionXML's lines."""

import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Invalid, bad_record, read_lines
from orrery.data.readers.columns import text_of
from orrery.data.rows.labelled import Labelled
from orrery.errors import DataError

PARTS = ("trn", "tst")
ITEMS = "output-items.txt"
"""In a folder of PECOS: what each label is called, a line each."""
RAW = "_raw_texts.txt"
"""How the name of a file of texts ends beside one of labels and numbers: train.txt, train_raw_texts.txt."""


NUMBERS, NAMES = "target_ind", ("lbl.json.gz", "lbl.json")
"""The numbers of a row's labels in the XMLRepository's raw texts (``trn.json.gz``), and the file of their names."""
LINES = ("_texts.txt", "_labels.txt")
"""How AttentionXML's two files end, with a line each for a text and for its labels, between which are blanks."""


def is_pecos(source: str) -> bool:
    """Say whether a source is a folder of PECOS, or such a folder and a part: ``FOLDER/tst``."""
    folder, part = _folder(source)
    return (folder / f"Y.{part}.npz").is_file()


def is_repository(source: str) -> bool:
    """Say whether a file begins with three numbers, as the XMLRepository's do: of texts, of words, of labels."""
    path = Path(source)
    if path.suffix != ".txt" or not path.is_file():
        return False
    with path.open("rb") as file:
        return _sizes(file.readline(200).decode("ascii", "replace")) is not None


def read_pecos(source: str, invalid: Invalid = "error") -> Iterator[Labelled]:
    """Yield the texts of ``X.trn.txt`` with their labels in ``Y.trn.npz``; other parts are ``FOLDER/tst``.

    Labels are called as ``output-items.txt`` says, else by their numbers from 0.

    Raises:
        DataError: a file is missing, damaged or of another length.
    """
    folder, part = _folder(source)
    file, table = folder / f"X.{part}.txt", folder / f"Y.{part}.npz"
    starts, columns, (count, width) = read_npz(table)
    listed = (folder / ITEMS).is_file()
    names = _distinct(_lines(folder / ITEMS, invalid)) if listed else [str(number) for number in range(width)]
    if len(names) != width:
        raise DataError(f"{folder / ITEMS}: {len(names):,} lines, {table.name} has {width:,} labels", "give one each")
    if not file.is_file():
        raise DataError(
            f"{folder}: no {file.name}: numbers of words alone, and an encoder reads texts", "a text a line"
        )
    texts = _lines(file, invalid)
    if len(texts) != count:
        raise DataError(f"{file}: {len(texts):,} texts, {table.name} has {count:,} rows", "give one each")
    for number, text in enumerate(texts):
        own = columns[starts[number] : starts[number + 1]]
        yield Labelled(f"{file}:{number + 1}", text, None, tuple(names[label] for label in own))


def read_npz(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[int, int]]:
    """Return where the rows of a matrix in scipy's ``.npz`` begin, their columns, and its shape; no pickle is read.

    Raises:
        DataError: it is damaged, not in compressed rows, or a column is out of range.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            kind = stored["format"].item()
            starts, columns = stored["indptr"].astype(np.int64), stored["indices"].astype(np.int64)
            rows, width = (int(size) for size in stored["shape"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: no sparse matrix of scipy: {error}", "write it with scipy.sparse.save_npz") from None
    if kind not in (b"csr", "csr"):
        raise DataError(f"{path}: a matrix in the format {kind!r}", "write it as compressed rows: matrix.tocsr()")
    sound = len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == len(columns) and (np.diff(starts) >= 0).all()
    if not sound or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise DataError(f"{path}: the numbers of rows or columns do not fit {rows:,} x {width:,}", "write it again")
    return starts, columns, (rows, width)


def read_repository(source: str, invalid: Invalid = "error") -> Iterator[Labelled]:
    """Yield the labels of a file in the XMLRepository's text format with the texts of the file beside it.

    The first line has the numbers of texts, words and labels; a line for each text has its labels with commas between
    them, and then words as ``number:weight``, which are not read: the encoder needs texts. These stand in
    ``NAME_raw_texts.txt``, a line each.

    Raises:
        DataError: there are no texts, more or fewer than the file says, or a label is out of range.
    """
    path = Path(source)
    beside = path.with_name(path.stem + RAW)
    if not beside.is_file():
        raise DataError(f"{path}: it has numbers of words, and an encoder reads texts", f"put the texts into {beside}")
    texts, lines = _lines(beside, invalid), _lines(path, invalid)
    count, _, width = _sizes(lines[0]) or (0, 0, 0)
    if not len(texts) == count == len(lines) - 1:
        message = f"{path}: {count:,} texts are said, {len(lines) - 1:,} lines follow, {beside} has {len(texts):,}"
        raise DataError(message, "get the files whole")
    for number, (text, line) in enumerate(zip(texts, lines[1:], strict=True), start=2):
        first = line.partition(" ")[0]
        own = first.split(",") if first and ":" not in first else []
        for label in own:
            if not label.isdecimal() or int(label) >= width:
                raise bad_record(f"{path}:{number}", f"the label {label!r:.40} is none of 0 to {width - 1}")
        yield Labelled(f"{beside}:{number - 1}", text, None, tuple(own))


def read_numbered(source: str, text: str, invalid: Invalid = "error") -> Iterator[Labelled] | None:
    """Return the texts of ``trn.json.gz`` of the XMLRepository with their labels, or nothing where it is another table.

    A label is called as ``lbl.json.gz`` beside it says, else by its number. All have the same relevance here.

    Args:
        source: the file.
        text: the column of the texts: LF-AmazonTitles' are ``title``, those of LF-Amazon ``content`` too.
        invalid: what is done with bytes that are no UTF-8.

    Raises:
        DataError: there is no such column, or a label is out of range.
    """
    path = Path(source)
    if ".json" not in path.suffixes or not path.is_file():
        return None
    if NUMBERS not in next((row for _, row in read_placed_rows(path, invalid=invalid)), ()):
        return None
    beside = next((path.with_name(name) for name in NAMES if path.with_name(name).is_file()), None)
    titles = None if beside is None else [str(row.get("title")) for _, row in read_placed_rows(beside, invalid=invalid)]
    names = None if titles is None else _distinct(titles)

    def labelled(where: str, row: Mapping[str, Any]) -> Labelled:
        numbers = row.get(NUMBERS)
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise bad_record(where, f"{NUMBERS} is {str(numbers)[:40]}, and no list of numbers from 0")
        if names is not None and max(numbers, default=0) >= len(names):
            raise bad_record(where, f"a label of {str(numbers)[:40]} is none of 0 to {len(names) - 1}")
        return Labelled(where, text_of(row, text, where), None, tuple(names[n] if names else str(n) for n in numbers))

    return (labelled(where, row) for where, row in read_placed_rows(path, (text, NUMBERS), invalid=invalid))


def read_two(source: str, invalid: Invalid = "error") -> Iterator[Labelled] | None:
    """Return the texts of AttentionXML's ``train_texts.txt`` with ``train_labels.txt``, or nothing where it is another.

    Raises:
        DataError: one has more lines.
    """
    path = Path(source)
    beside = path.with_name(path.name.removesuffix(LINES[0]) + LINES[1])
    if not path.name.endswith(LINES[0]) or path.name.endswith(RAW) or not beside.is_file():
        return None
    texts, labels = _lines(path, invalid), _lines(beside, invalid)
    if len(texts) != len(labels):
        raise DataError(f"{path}: {len(texts):,} texts, {beside} has {len(labels):,} lines", "give one each")
    pairs = enumerate(zip(texts, labels, strict=True), start=1)
    return (Labelled(f"{path}:{number}", text, None, tuple(own.split())) for number, (text, own) in pairs)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of which each is one label's: one that several have gets the number of its label."""
    counts = Counter(names)
    return [f"{name} [{number}]" if counts[name] > 1 else name for number, name in enumerate(names)]


def _folder(source: str) -> tuple[Path, str]:
    path = Path(source)
    return (path.parent, path.name) if path.name in PARTS and not path.exists() else (path, PARTS[0])


def _sizes(line: str) -> tuple[int, int, int] | None:
    words = line.split()
    return (int(words[0]), int(words[1]), int(words[2])) if len(words) == 3 and all(map(str.isdecimal, words)) else None


def _lines(path: Path, invalid: Invalid) -> list[str]:
    return [line.text(invalid).rstrip("\r\n") for line in read_lines(path)]
