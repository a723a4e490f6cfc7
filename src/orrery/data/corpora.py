"""Documents from wherever text lies: Python's documentation, a named set, a file, a folder, JSON lines."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orrery import settings
from orrery.data import python_docs, sets
from orrery.data.files import Invalid, decode, open_binary
from orrery.data.jsonl import read_column
from orrery.errors import DataError

PYTHON_DOCS = "python-docs"
TEXT_SUFFIXES = (".txt", ".md", ".rst")
COMPRESSED = (".gz", ".xz")


@dataclass(frozen=True)
class Document:
    """One whole text and a name that is unique in its corpus and the same on every machine."""

    name: str
    text: str


def read_corpus(
    source: str | Path,
    *,
    column: str = "text",
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[Document]:
    """Yield the documents of a source, in an order that does not depend on the machine.

    ``source`` is "python-docs", a named set ("tiny-shakespeare", "python-peps", "python-peps/val"), a text
    file, a .jsonl file (one document a line, in ``column``; also .gz and .xz), or a folder of these. Text is
    never changed: byte order marks, line ends and NULs stay. Invalid UTF-8 is an error or, with "replace",
    U+FFFD; at most ``skip_bad`` bad JSON lines a file are left out. Raises `DataError`.
    """
    if source == PYTHON_DOCS:
        yield from (Document(name, text) for name, text in python_docs.collect())
        return
    root, files, column = locate(source, column)
    for file in files:
        yield from read_file(file, root, column, invalid, skip_bad)


def locate(source: str | Path, column: str) -> tuple[Path, list[Path], str]:
    """Return the folder that names are relative to, the files in order, and the column that holds their text."""
    name, _, part = str(source).partition("/")
    if name in sets.SETS and not Path(source).exists():
        root, files = sets.corpus_files(name, part, settings.data_folder())
        return root, files, sets.SETS[name].column or column
    return *_files(Path(source)), column


def is_plain_text(file: Path) -> bool:
    """Whether the whole file is one document."""
    return _plain_suffix(file) != ".jsonl"


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """Return the sha256 over names and texts, each with its length before it; reads them once, keeps none."""
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.name, document.text):
            content = part.encode()
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
    return digest.hexdigest()


def read_file(file: Path, root: Path, column: str, invalid: Invalid, skip_bad: int) -> Iterator[Document]:
    """Yield the documents of one file, named by its path below ``root``."""
    name = file.relative_to(root).as_posix()
    if not is_plain_text(file):
        for line, text in read_column(file, column, invalid, skip_bad):
            yield Document(f"{name}:{line}", text)
        return
    with open_binary(file) as stream:
        yield Document(name, decode(stream.read(), str(file), invalid))


def _files(path: Path) -> tuple[Path, list[Path]]:
    """Return the folder that names are relative to, and the files in order."""
    if path.is_file():
        return path.parent, [path]
    if not path.is_dir():
        known = ", ".join([PYTHON_DOCS, *(name for name, known in sets.SETS.items() if known.is_corpus)])
        raise DataError(f"{path}: no such file, folder or named set", f"the named corpora are: {known}")
    found = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith(".")]
    files = [file for file in found if _plain_suffix(file) in (*TEXT_SUFFIXES, ".jsonl")]
    if not files:
        raise DataError(f"{path}: no text among its {len(found)} files", "put .txt, .md, .rst or .jsonl files there")
    return path, files


def _plain_suffix(file: Path) -> str:
    return Path(file.stem).suffix if file.suffix in COMPRESSED else file.suffix
