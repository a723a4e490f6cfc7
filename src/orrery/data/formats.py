"""Which reader reads which file: a registry by suffix, and the texts that each format holds."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from orrery.data.files import Faults, decode, open_text
from orrery.data.readers import bio, conllu, html, json_records, parquet, samples, tables, translation_units
from orrery.data.readers.columns import are_numbers, check_columns, text_of
from orrery.data.records import Document, Sentence
from orrery.errors import DataError

Rows = Iterator[tuple[int, dict[str, Any]]]
R = TypeVar("R")

COMPRESSED = (".gz", ".xz", ".bz2")
TEXT = (".txt", ".md", ".rst")
MEMORIES = (".tmx", ".xlf", ".xliff")
"""Translation memories, whose rows are pairs."""
ROWS: dict[str, Callable[[Path, tuple[str, ...], Faults], Rows]] = {
    ".jsonl": json_records.read_lines_of_objects,
    ".ndjson": json_records.read_lines_of_objects,
    ".json": json_records.read_list_of_objects,
    ".csv": tables.read_csv,
    ".tsv": tables.read_tsv,
    ".tab": tables.read_tsv,
    ".parquet": parquet.read_rows,
    ".tar": samples.read_samples,
    **dict.fromkeys(MEMORIES, translation_units.read_units),
}
SENTENCES: dict[str, Callable[[Path, Faults], Iterator[Sentence]]] = {
    ".conllu": conllu.read_sentences,
    ".conll": bio.read_sentences,
    ".bio": bio.read_sentences,
}
WHOLE: dict[str, Callable[[Path, Faults], str]] = dict.fromkeys((".html", ".htm", ".xhtml"), html.read_text)
SUFFIXES = (*TEXT, *WHOLE, *(suffix for suffix in ROWS if suffix not in (".json", ".tar", *MEMORIES)), *SENTENCES)
"""What is read of a folder. A .json file beside others more often describes them than holds their text, and an archive
holds pictures or is none of ours."""

_ARRAYS = "write its texts as JSON lines, its pictures as .png into a folder for each label"
_MATLAB = (
    "with scipy, as of SVHN: python -c \"import numpy, scipy.io; f = scipy.io.loadmat('FILE'); "
    "numpy.savez('NEW.npz', images=f['X'].transpose(3, 0, 1, 2), labels=f['y'])\"; and name NEW.npz"
)
REFUSED = {
    ".zip": "unpack it: `unzip FILE`",
    ".tgz": "unpack it: `tar xf FILE`",
    ".zst": "decompress it: `zstd -d FILE`",
    ".7z": "unpack it: `7z x FILE`",
    ".arrow": "write it as Parquet: `datasets.load_from_disk(FOLDER).to_parquet(FILE)`",
    ".feather": "write it as Parquet: `pandas.read_feather(FILE).to_parquet(NEW)`",
    ".pkl": "write it as Parquet: `pandas.read_pickle(FILE).to_parquet(NEW)`",
    ".npy": _ARRAYS,
    ".npz": _ARRAYS,
    ".h5": _ARRAYS,
    ".mat": _MATLAB,
    ".tfrecord": "write it as Parquet or JSON lines",
    ".spacy": "write JSON lines: a text, and entities as [start, end, label]",
    ".xlsx": "save it as CSV",
    ".xls": "save it as CSV",
    ".ods": "save it as CSV",
    ".pdf": "save its text as .txt",
    ".docx": "save its text as .txt",
}
"""Formats that no reader reads, and what to do with them."""


def format_of(file: Path) -> str:
    """Return the suffix that says the format, in small letters, below .gz, .xz and .bz2.

    Raises `DataError` for formats that no reader reads, with what to do.
    """
    last = file.suffix.lower()
    suffix = Path(file.stem).suffix.lower() if last in COMPRESSED else last
    if suffix in REFUSED:
        raise DataError(f"{file}: {suffix} files are not read", REFUSED[suffix])
    if suffix == ".parquet" and last in COMPRESSED:
        raise DataError(f"{file}: a compressed Parquet file", "decompress it; Parquet compresses its columns itself")
    return suffix


def is_plain_text(file: Path) -> bool:
    """Whether the whole file is one document, as it stands."""
    return format_of(file) not in (*ROWS, *SENTENCES, *WHOLE)


def read_rows(file: Path, wanted: tuple[str, ...], faults: Faults) -> Rows:
    """Yield (line or row number, row) of a file of rows. Raises `DataError` for other formats."""
    return _reader(ROWS, file, "rows")(file, wanted, faults)


def read_sentences(file: Path, faults: Faults) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-U or BIO file. Raises `DataError` for other formats."""
    return _reader(SENTENCES, file, "sentences")(file, faults)


def read_documents(
    file: Path, name: str, column: str, faults: Faults, *, whole_rows: bool = False
) -> Iterator[Document]:
    """Yield the documents of any file: the whole text, the column of each row, or the sentences joined."""
    suffix = format_of(file)
    if suffix in ROWS:
        yield from _of_rows(file, name, column, faults, whole_rows=whole_rows)
    elif suffix in SENTENCES:
        yield from _of_sentences(read_sentences(file, faults), name)
    elif suffix in WHOLE:
        yield Document(name, WHOLE[suffix](file, faults))
    else:
        with open_text(file) as stream:
            yield Document(name, decode(stream.read(), str(file), faults.invalid))


def _of_rows(file: Path, name: str, column: str, faults: Faults, *, whole_rows: bool) -> Iterator[Document]:
    # A number for a name says that a table has no line of names: all its columns are then numbered.
    wanted = () if whole_rows and not are_numbers((column,)) else (column,)
    for number, row in read_rows(file, wanted, faults):
        try:
            check_columns(f"{file}:{number}", row, (column,))
            text = text_of(row, column, f"{file}:{number}")
        except DataError as error:
            faults.meet(error)
            continue
        yield Document(f"{name}:{number}", text, row if whole_rows else {})


def _of_sentences(sentences: Iterator[Sentence], name: str) -> Iterator[Document]:
    """Join the sentences of a document, one a line; where no document was started, each is its own."""
    line = 0
    texts: list[str] = []
    inside = False
    for sentence in sentences:
        inside = inside or sentence.starts_document
        if texts and (sentence.starts_document or not inside):
            yield Document(f"{name}:{line}", "\n".join(texts))
            texts = []
        line = line if texts else sentence.line
        texts.append(sentence.text)
    if texts:
        yield Document(f"{name}:{line}", "\n".join(texts))


def _reader(readers: Mapping[str, R], file: Path, what: str) -> R:
    suffix = format_of(file)
    if suffix not in readers:
        raise DataError(
            f"{file}: no file of {what}", f"{what} are read from {', '.join(readers)} files: name a copy by its form"
        )
    return readers[suffix]
