"""Documents, rows, sentences and pairs from wherever they lie: a named set, a file, a folder."""

import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orrery import settings
from orrery.checkpoints.disk import refuse_remote
from orrery.data import formats, generated, python_docs, sets
from orrery.data.files import Faults, Invalid
from orrery.data.readers import parallel
from orrery.data.readers.columns import are_numbers
from orrery.data.records import Document, Pair, Sentence
from orrery.errors import DataError, UsageError, did_you_mean

logger = logging.getLogger(__name__)

__all__ = [
    "Document",
    "corpus_fingerprint",
    "is_made",
    "read_corpus",
    "read_pairs",
    "read_placed_rows",
    "read_rows",
    "read_sentences",
]

PYTHON_DOCS = "python-docs"
COLUMN = "text"
"""The column of a text where nothing else is said; a named set may have another."""

LEARNED = ("train", "training")
_PART = re.compile(r"(train|training|val|valid|validation|dev|test|testing)(?:\.|$)", re.IGNORECASE)
_PART_OF_ROWS = re.compile(_PART.pattern.replace(r"\.", "[-_.]"), re.IGNORECASE)
"""How files and folders of the parts of a data set are called: val/, test.txt; train_1.csv, as test_1.md is not."""


def read_corpus(
    source: str | Path,
    *,
    column: str = COLUMN,
    invalid: Invalid = "error",
    skip_bad: int = 0,
    whole_rows: bool = False,
) -> Iterator[Document]:
    """Yield the documents of a source, in an order that does not depend on the machine.

    ``source`` is "python-docs", a named set ("tiny-shakespeare", "python-peps/val"), a generated one
    ("docstring-summaries"), a file of any format of `orrery.data.formats` (also .gz, .xz and .bz2), or a folder
    of these. A text file is one document, JSON lines, CSV and Parquet hold one a row, in ``column``, CoNLL-U one
    from ``# newdoc`` to the next. Text is never changed: line ends and NULs stay, and byte order marks but where
    they stand before rows. Invalid UTF-8 is an error or, with "replace", U+FFFD; at most ``skip_bad`` bad records a
    file are left out. With ``whole_rows`` the documents of tables have their ``row``. Raises `DataError`.
    """
    if source == PYTHON_DOCS:
        yield from (Document(name, text) for name, text in python_docs.collect())
        return
    if made := generated.find(source):
        yield from made.documents(column)
        return
    root, files, column = locate(source, column)
    empty = True
    for file in files:
        name = name_of(file, root)
        for document in formats.read_documents(file, name, column, Faults(invalid, skip_bad), whole_rows=whole_rows):
            empty = False
            yield document
    if empty:
        raise DataError(f"{source}: 0 documents in {len(files)} files", "check that the file was written whole")


def read_rows(
    source: str | Path,
    columns: Sequence[str] = (),
    *,
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of JSON lines, CSV, tab-separated or Parquet files as {column: value}.

    All of ``columns`` must be there. Columns named "1", "2", ... say that a table has no line of names. Raises
    `DataError`.
    """
    for _, row in read_placed_rows(source, columns, invalid=invalid, skip_bad=skip_bad):
        yield row


def read_placed_rows(
    source: str | Path,
    columns: Sequence[str] = (),
    *,
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file:line, row) as `read_rows` does, for messages about what a row holds. Raises `DataError`."""
    if made := generated.find(source):
        yield from made.rows(columns)
        return
    _, files, own = locate(source)
    wanted = tuple(columns) or ((own,) if are_numbers((own,)) else ())
    for file in files:
        for number, row in formats.read_rows(file, wanted, Faults(invalid, skip_bad)):
            yield f"{file}:{number}", {name: row[name] for name in columns} if columns else row


def read_sentences(source: str | Path, *, invalid: Invalid = "error", skip_bad: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of CoNLL-U and BIO files, or of a set that is named. Raises `DataError`."""
    if made := generated.find(source):
        yield from made.sentences()
        return
    _, files, _ = locate(source)
    for file in files:
        yield from formats.read_sentences(file, Faults(invalid, skip_bad))


def read_pairs(
    source: str | Path,
    target: str | Path | None = None,
    *,
    empty: parallel.Empty = "error",
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[Pair]:
    """Yield the pairs of lines of two files, or of a named set alone ("multi30k-en-de/train").

    A pair with an empty side is an error, or is skipped, or is kept. Raises `DataError` where one file has more
    lines than the other.
    """
    if target is None:
        left, right = sets.pair_files(str(source), settings.data_folder())
    else:
        left, right = _only_file(source), _only_file(target)
    return parallel.read_pairs(left, right, Faults(invalid, skip_bad), empty)


def is_made(source: str | Path) -> bool:
    """Whether the source is made by this program, from no file that it could name."""
    return source == PYTHON_DOCS or generated.find(source) is not None


def locate(source: str | Path, column: str = COLUMN) -> tuple[Path, list[Path], str]:
    """Return the folder that names are relative to, the files in order, and the column that holds the text.

    Raises `DataError` where nothing is there to read.
    """
    try:
        column.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"no column is called {column!r}: it is not UTF-8", "give its name as the file has it"
        ) from None
    name, _, part = str(source).partition("/")
    if name not in sets.SETS or Path(source).exists():
        return *_files(Path(source)), column
    root, files = sets.corpus_files(name, part, settings.data_folder())
    own = sets.SETS[name].column
    return root, files, own if own and column == COLUMN else column


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """Return the sha256 over names and texts, each with its length before it; reads them once, keeps none."""
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.name, document.text):
            content = part.encode()
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
    return digest.hexdigest()


def _only_file(source: str | Path) -> Path:
    _, files, _ = locate(source)
    if len(files) > 1:
        raise UsageError(f"{source}: {len(files)} files", "parallel text is one file for each side")
    return files[0]


def _files(path: Path) -> tuple[Path, list[Path]]:
    """Return the folder that names are relative to, and the files in order."""
    if path.is_file():
        return path.parent, [path]
    if not path.is_dir():
        refuse_remote(path)
        named = (name for name, known in sets.SETS.items() if known.is_corpus)
        corpora = [PYTHON_DOCS, *named, *generated.names()]
        near = did_you_mean(path.parts[0] if path.parts else "", corpora)
        raise DataError(
            f"{path}: no such file, folder or named set", f"{near}the named corpora are: {', '.join(corpora)}"
        )
    entries = [entry for entry in sorted(path.rglob("*")) if not (entry.name.startswith(".") or _is_open_folder(entry))]
    files = [file for file in entries if file.is_file() and _is_known(file)]
    known = f"these are read: {', '.join(formats.SUFFIXES)}; also .gz, .xz"
    if not files:
        other = next((entry.suffix.lower() for entry in entries if entry.suffix.lower() in formats.REFUSED), "")
        listed = next((entry for entry in entries if entry.suffix.lower() == ".json"), None)
        hint = f"{other} files are not read: {formats.REFUSED[other]}" if other else known
        hint = hint if listed is None or other else f"a .json file is read when it is named, such as {listed}"
        raise DataError(f"{path}: no text among its files ({len(entries)})", hint)
    _refuse_parts(path, files)
    if others := [name_of(entry, path) for entry in entries if entry not in set(files)]:
        _tell_left_out(
            str(path), len(entries), ", ".join(others[:5]) + (", ..." if len(others) > 5 else ""), len(others)
        )
    return path, files


def archives_in(folder: Path) -> list[Path]:
    """Return the archives of samples in a folder; of another path nothing.

    Raises:
        DataError: they are those of several parts of a data set.
    """
    files = sorted(folder.glob("*.tar"))
    _refuse_parts(folder, files)
    return files


def _refuse_parts(path: Path, files: Sequence[Path]) -> None:
    """Raise `DataError` where files or folders are named as the parts of a data set: all would be trained on as one."""
    found: dict[Path, dict[str, str]] = {}  # by the folder: parts lie side by side, as src/train.md and test/ do not
    for file in files:
        names = file.relative_to(path).parts
        for depth, name in enumerate(names):
            ends = depth == len(names) - 1
            if ends and formats.is_plain_text(file) and formats.format_of(file) != ".txt":
                continue  # training.md and testing.md are pages
            if part := (_PART_OF_ROWS if ends and not formats.is_plain_text(file) else _PART).match(name):
                found.setdefault(Path(*names[:depth]), {})[name] = part[1].lower()
    for parts in found.values():
        learned, others = ([name for name in parts if (parts[name] in LEARNED) is side] for side in (True, False))
        if learned and others:
            _raise_parts(path, learned + others)


def _raise_parts(path: Path, names: Sequence[str]) -> None:
    message = f"{path} holds the parts of a data set: {', '.join(names[:6])}"
    hint = "name one of them, as they are not read as one; files of one part can lie in a folder of their own"
    raise DataError(message, hint)


@cache
def _tell_left_out(path: str, files: int, names: str, left_out: int) -> None:
    """Say once in a process which files of a folder are no text that can be read."""
    logger.warning("%s: %s of %s files left out, of another kind or unreadable: %s", path, left_out, files, names)


def _is_open_folder(path: Path) -> bool:
    return path.is_dir() and os.access(path, os.R_OK | os.X_OK)


def name_of(file: Path, root: Path) -> str:
    """Return a file's name inside a folder; bytes of it that are not UTF-8 are spelt out."""
    return os.fsencode(file.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def _is_known(file: Path) -> bool:
    stem = Path(file.stem) if file.suffix.lower() in formats.COMPRESSED else file
    return stem.suffix.lower() in formats.SUFFIXES
