"""Tagged words: a word and its tag a line, as in the CoNLL shared tasks on names."""

import re
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
"""Lines from which on a first column of 1, 2, 3, of one name again and again, or of tags, holds no words."""
_TAG = re.compile(r"O|[BIESLU]-\S+")
_SWAP = "write the words first: `awk -F'[ \\t]+' -v OFS='\\t' 'NF {print $2, $1; next} 1' FILE > NEW.conll`"
_FIRST = "call a CoNLL-U file .conllu; of another take the first columns away: `cut -f 2- FILE > NEW`"


def read_sentences(file: Path, faults: Faults) -> Iterator[Sentence]:
    """Yield the sentences: words in the first column, tags in the last, tabs (or else blanks) between.

    Lines before the first word that begin with # and have another number of columns are comments. A line with fewer
    than two columns, without a word or with another number of columns makes its sentence a fault.

    Raises:
        DataError: the first column of the first sentence of three words has the numbers of the words, their tags, or
            the name of their document as OntoNotes has it; or words and tags are joined by a mark.
    """
    starts, has_words = False, False
    for number, block in enumerate(read_blocks(file)):
        try:
            if not number:
                _refuse_joined(block, faults.invalid)
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
        if not has_words and (instead := _no_words(words, len(rows[0][1]))):
            message = f"{file}:{line}: the first column {instead}, where the words themselves should stand"
            raise DataError(message, _SWAP if len(rows[0][1]) == 2 else _FIRST)
        has_words = has_words or len(words) >= COUNTED  # a later sentence may well count: 1 2 3
        yield Sentence(line, str(line), " ".join(words), words, tags=tags, starts_document=starts)
        starts = False


def _refuse_joined(block: Sequence[Line], invalid: Invalid) -> None:
    """Raise `DataError` where a line has several words, each joined to its tag: ``The/DT dog/NN``."""
    fields = [field for line in block for field in line.text(invalid).split()]
    mark = next((mark for mark in "/_" if all(mark in field[1:-1] for field in fields)), None)
    if mark is not None and len(fields) >= max(2 * COUNTED, len(block) + 1):
        each = f"'\\t'.join(word.rsplit('{mark}', 1)) for word in each.split()"
        program = f"import sys; [print(*({each}), '', sep='\\n') for each in sys.stdin]"
        message = f"{block[0].where}: words are joined to their tags by {mark!r}: {fields[0][:40]!r}"
        raise DataError(message, f'write a word and its tag a line: python -c "{program}" < FILE > NEW.conll')


def _no_words(words: Sequence[str], columns: int) -> str:
    """Return what a first column holds in the place of words; nothing where it may hold words."""
    if len(words) < COUNTED:
        return ""
    if columns == 2:
        return "has the tags" if all(map(_TAG.fullmatch, words)) else ""
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
            what, mark = f"not a word and its tag: {line.text(invalid)[:40]!r}", columns[0][1:-1]
            if other := next((other for other in ",;|" if len(columns) == 1 and other in mark), None):
                raise DataError(f"{line.where}: {what}", f"put tabs between: `tr '{other}' '\\t' < FILE > NEW.conll`")
            raise bad_record(line.where, what)
    for line, columns in rows:
        if len(columns) != width and columns[0] != DOCUMENT:
            raise bad_record(line.where, f"{len(columns)} columns, and {width} at {rows[-1][0].where}")
    return rows


def _columns(text: str) -> list[str]:
    return text.split("\t") if "\t" in text else [column for column in text.split(" ") if column] or [""]
