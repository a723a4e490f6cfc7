"""Text of any size, in blocks that are encoded one by one: no source needs more memory than its largest line."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orrery.data import formats
from orrery.data.corpora import Document, is_made, locate, name_of, read_corpus
from orrery.data.files import Faults, Invalid, open_text
from orrery.errors import DataError
from orrery.text import chunks

BLOCK = 1 << 20
"""Characters, and bytes of a file, that are held at once; more only where a text has no place to cut."""

WHOLE = 1 << 23
"""Longest text, in characters, that is encoded without a cut: the engine takes about 110 bytes a character."""


Cut = Callable[[str], int | None]
"""The last place at which a text may be cut, or None."""


@dataclass(frozen=True)
class ReadingOptions:
    """How a source is read: column of JSON lines, what bad bytes become, bad lines that are left out."""

    column: str = "text"
    invalid: Invalid = "error"
    skip_bad: int = 0


@dataclass(frozen=True)
class TextBlock:
    """A part of a document; ``last`` ends it. The ids of its blocks, joined, are the document's."""

    document: str
    text: str
    last: bool


def read_blocks(source: str | Path, reading: ReadingOptions, last_cut: Cut = chunks.last_cut) -> Iterator[TextBlock]:
    """Yield every document of a source block by block, in the order of `read_corpus`.

    ``last_cut`` says where the tokenizer allows a cut (`Tokenizer.last_cut`); if nowhere, each document is one
    block. Raises `DataError` as `read_corpus` does, and for a text over `WHOLE` that cannot be cut.
    """
    if is_made(source):
        for document in read_corpus(source, column=reading.column):
            yield from _document(document, last_cut)
        return
    root, files, column = locate(source, reading.column)
    for file in files:
        name = name_of(file, root)
        if formats.is_plain_text(file):
            yield from _blocks(name, decoded(file, reading.invalid), last_cut)
        else:
            for document in formats.read_documents(file, name, column, Faults(reading.invalid, reading.skip_bad)):
                yield from _document(document, last_cut)


def read_texts(source: str | Path, reading: ReadingOptions) -> Iterator[str]:
    """Yield the blocks' texts alone, as a tokenizer trains on them: words are never cut."""
    return (block.text for block in read_blocks(source, reading))


def decoded(file: Path, invalid: Invalid) -> Iterator[str]:
    """Yield the text of a file, also .gz or .xz, without holding it whole.

    Raises `DataError` with the offset of the first byte that is not UTF-8, unless ``invalid`` is "replace".
    """
    decoder = codecs.getincrementaldecoder("utf-8")("strict" if invalid == "error" else "replace")
    with open_text(file) as stream:
        offset = 0
        while True:
            content = stream.read(BLOCK)
            start = offset - len(decoder.getstate()[0])  # a character may have begun in the block before
            try:
                yield decoder.decode(content, final=not content)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{file}: invalid UTF-8 at byte {start + error.start}",
                    'mend or convert the file; `invalid="replace"` puts U+FFFD in place of bad bytes',
                ) from None
            if not content:
                return
            offset += len(content)


def _document(document: Document, last_cut: Cut) -> Iterator[TextBlock]:
    text = document.text
    slices = (text[start : start + BLOCK] for start in range(0, len(text), BLOCK))
    return _blocks(document.name, slices, last_cut)


def _blocks(name: str, texts: Iterable[str], last_cut: Cut) -> Iterator[TextBlock]:
    held = ""
    for text in texts:
        held += text
        place = last_cut(held) if len(held) > BLOCK // 2 else None
        if place is not None:
            yield TextBlock(name, held[:place], last=False)
            held = held[place:]
        elif len(held) > WHOLE:
            raise _too_long(name, last_cut("a b") is not None)
    yield TextBlock(name, held, last=True)


def _too_long(name: str, cuttable: bool) -> DataError:
    if cuttable:
        message = f"{name}: more than {WHOLE:,} characters without a place to cut (a word or full stop, then a blank)"
        return DataError(message, "break the text into lines")
    message = f"{name}: more than {WHOLE:,} characters, and this tokenizer can only read a text whole"
    return DataError(message, "break the text into documents (.jsonl), or use a tokenizer without a normalizer")
