"""Tagged words: a word and its tag a line, as in the CoNLL shared tasks on names."""

from collections.abc import Iterator
from pathlib import Path

from orrery.data.files import Faults, Invalid, Line, bad_record
from orrery.data.readers.blocks import read_blocks
from orrery.data.records import Sentence
from orrery.errors import DataError

DOCUMENT = "-DOCSTART-"
"""The word that CoNLL-2003 writes where a document starts; no sentence of the text."""


def read_sentences(file: Path, faults: Faults) -> Iterator[Sentence]:
    """Yield the sentences: words in the first column, tags in the last, tabs (or else blanks) between.

    A line with fewer than two columns or without a word makes its sentence a fault.
    """
    starts = False
    for block in read_blocks(file):
        try:
            words, tags = zip(*(_word(line, faults.invalid) for line in block), strict=True)
        except DataError as error:
            faults.meet(error)
            continue
        if words == (DOCUMENT,):
            starts = True
            continue
        line = block[0].number
        yield Sentence(line, str(line), " ".join(words), words, tags=tags, starts_document=starts)
        starts = False


def _word(line: Line, invalid: Invalid) -> tuple[str, str]:
    text = line.text(invalid)
    columns = text.split("\t" if "\t" in text else " ")
    if len(columns) < 2 or not columns[0] or not columns[-1]:
        raise bad_record(line.where, f"not a word and its tag: {text[:40]!r}")
    return columns[0], columns[-1]
