"""What a reader understood of a source: counts, and its first records on one line each."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orrery.data import corpora, generated, sets
from orrery.data.files import Faults
from orrery.data.formats import MEMORIES, ROWS, SENTENCES, format_of, read_rows
from orrery.data.readers.columns import are_numbers
from orrery.data.readers.stacks import stacks_of
from orrery.data.records import Document, Pair, Sentence
from orrery.data.rows.pair_columns import find_pair_columns, read_column_pairs
from orrery.errors import DataError

Record = Document | Sentence | Pair


@dataclass
class Overview:
    """How many records of which kind there are, what they hold in sum, and the first of them.

    ``columns`` are those of the first row, ``column`` is the one that is read; empty where there are no rows.
    """

    kind: str
    columns: tuple[str, ...] = ()
    column: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[Record] = field(default_factory=list)


def overview(
    source: str,
    target: str | None,
    examples: int,
    column: str,
    watch: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Overview:
    """Read a source to its end and keep its first ``examples`` records.

    ``watch`` sees every record pass, for a progress bar. Raises `DataError` as the readers do.
    """
    seen, records = _opened(source, target, column)
    for record in watch(records):
        seen.counts[seen.kind] += 1
        seen.counts.update(_measures(record))
        if len(seen.examples) < examples:
            seen.examples.append(record)
    return seen


def _opened(source: str, target: str | None, column: str) -> tuple[Overview, Iterator[Record]]:
    if target is not None or sets.is_parallel(source):
        return Overview("pairs"), corpora.read_pairs(source, target, empty="keep")
    if stacks_of(Path(source)) is not None:
        hint = "`orrery finetune image-classification --from MODEL --train FILE` reads them, and tells their labels"
        raise DataError(f"{source}: labelled pictures in arrays, and no texts", hint)
    if column == corpora.COLUMN and (columns := _pair_columns(source)):
        return Overview("pairs"), read_column_pairs(source, columns)
    documents = corpora.read_corpus(source, column=column)
    if made := generated.find(source):
        if not made.set.columns:
            return Overview("sentences"), made.sentences()
        return Overview("documents", made.set.columns, made.column(column)), documents
    if source == corpora.PYTHON_DOCS:
        return Overview("documents"), documents
    _, files, column = corpora.locate(source, column)
    formats = {format_of(file) for file in files}
    if formats <= set(SENTENCES):
        return Overview("sentences"), corpora.read_sentences(source)
    if not formats <= set(ROWS):
        return Overview("documents"), documents
    numbered = (column,) if are_numbers((column,)) else ()
    _, first = next(read_rows(files[0], numbered, Faults()), (0, {}))
    return Overview("documents", tuple(first), column), documents


def _pair_columns(source: str) -> tuple[str, str] | None:
    """Return the columns of a translation memory or a named table whose rows are pairs; nothing for what is text."""
    name, _, part = source.partition("/")
    made = generated.find(source)
    is_table = name in sets.SETS and sets.SETS[name].columns and part in sets.SETS[name].tables
    memory = Path(source).suffix.lower() in MEMORIES
    if memory or (made and {"source", "target"} <= set(made.set.columns)) or (is_table and not Path(source).exists()):
        return find_pair_columns(source, {})
    return None


def _measures(record: Record) -> dict[str, int]:
    """Return what one record adds to the counts."""
    if isinstance(record, Pair):
        sides = record.source, record.target
        return {
            "characters of the source": len(sides[0]),
            "characters of the target": len(sides[1]),
            "pairs with an empty side": int(not all(side.strip() for side in sides)),
        }
    if isinstance(record, Sentence):
        return {"words": len(record.words), "documents": int(record.starts_document)}
    return {"characters": len(record.text), "empty documents": int(not record.text.strip())}


def one_line(record: Record, width: int = 110) -> str:
    """Return a record on one line: white space folded, words with their tags, the sides of a pair by |||."""
    if isinstance(record, Pair):
        half = width // 2
        return f"{record.line}: {_cut(record.source, half)} ||| {_cut(record.target, half)}"
    if isinstance(record, Sentence):
        tags = record.tags or record.upos
        return _cut(f"{record.line}: {' '.join(map('/'.join, zip(record.words, tags, strict=True)))}", width)
    return _cut(f"{record.name}: {record.text[: 4 * width]}", width)


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 3]}..."
