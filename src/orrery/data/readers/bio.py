"""Tagged words: a word and its tag a line, as in the CoNLL shared tasks on names."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from orrery.data.files import Faults, Invalid, Line, bad_record
from orrery.data.readers.blocks import read_blocks
from orrery.data.records import Sentence
from orrery.errors import DataError

DOCUMENT = "-DOCSTART-"
"""The word that CoNLL-2003 writes where a document starts; no sentence of the text."""


_MARKS = ("#begin document", "#end document")
"""Lines that OntoNotes has around a document."""
COUNTED = 3
"""Lines from which on a first column of 1, 2, 3, or of one name again and again, holds no words."""


def read_sentences(file: Path, faults: Faults) -> Iterator[Sentence]:
    """Yield the sentences: words in the first column, tags in the last, tabs (or else blanks) between.

    Lines before the first word that begin with # and have another number of columns are comments. A line with fewer
    than two columns, without a word or with another number of columns makes its sentence a fault.

    Raises:
        DataError: the first column of the first sentence of three words has the numbers of the words, or the name of
            their document as OntoNotes has it.
    """
    starts, has_words = False, False
    for block in read_blocks(file):
        try:
            rows = _rows(block, faults.invalid)
        except DataError as error:
            faults.meet(error)
            continue
        starts = starts or any(columns[0] == DOCUMENT for _, columns in rows)
        rows = [(line, columns) for line, columns in rows if columns[0] != DOCUMENT]
        if not rows:
            continue
        words, tags = zip(*((columns[0], columns[-1]) for _, columns in rows), strict=True)
        line = rows[0][0].number
        if not has_words and len(rows[0][1]) > 2 and (instead := _no_words(words)):
            message = f"{file}:{line}: the first column {instead}, where the words themselves should stand"
            hint = "call a CoNLL-U file .conllu; of another take the first columns away: `cut -f 2- FILE > NEW`"
            raise DataError(message, hint)
        has_words = has_words or len(words) >= COUNTED  # a later sentence may well count: 1 2 3
        yield Sentence(line, str(line), " ".join(words), words, tags=tags, starts_document=starts)
        starts = False


def _no_words(words: Sequence[str]) -> str:
    """Return what a first column holds in the place of words; nothing where it may hold words."""
    if len(words) < COUNTED:
        return ""
    if words == tuple(map(str, range(1, len(words) + 1))):
        return "counts the words"
    return "names the document" if len(set(words)) == 1 and "/" in words[0][1:-1] else ""


def _rows(block: Sequence[Line], invalid: Invalid) -> list[tuple[Line, list[str]]]:
    """Return the lines of a sentence with their columns, without comments before it."""
    texts = [line.text(invalid) for line in block]
    rows = [(line, _columns(text)) for line, text in zip(block, texts, strict=True) if not text.startswith(_MARKS)]
    width = len(rows[-1][1]) if rows else 0
    while rows and rows[0][1][0].startswith("#") and len(rows[0][1]) != width:
        rows = rows[1:]
    for line, columns in rows:
        if len(columns) < 2 or not columns[0] or not columns[-1]:
            raise bad_record(line.where, f"not a word and its tag: {line.text(invalid)[:40]!r}")
    for line, columns in rows:
        if len(columns) != width and columns[0] != DOCUMENT:
            raise bad_record(line.where, f"{len(columns)} columns, and {width} at {rows[-1][0].where}")
    return rows


def _columns(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else [column for column in text.split(" ") if column] or [""]
