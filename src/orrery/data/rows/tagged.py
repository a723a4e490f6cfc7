"""Texts whose words have labels: CoNLL-U and BIO files, rows with two lists, and spans of characters."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from orrery.data.corpora import is_made, locate, read_placed_rows, read_sentences
from orrery.data.files import Invalid, bad_record, kept
from orrery.data.formats import SENTENCES, format_of, is_plain_text
from orrery.data.readers.columns import list_in
from orrery.data.records import Sentence
from orrery.data.rows.annotated import told
from orrery.data.rows.spans import SAID, brat_rows, span_columns, tagged_words
from orrery.errors import DataError

logger = logging.getLogger(__name__)

LAYERS = ("tags", "upos", "xpos", "deprels", "lemmas")
"""Annotations of the words of a sentence, the usual one of a file first."""

WORDS = ("words", "tokens", "text")
TAGS = ("tags", "ner_tags", "pos_tags", "labels", "upos")
"""Names of the columns of rows, the likeliest first."""
_A_WORD_A_ROW = "write it as FILE.conll: a word and its tag a line, an empty line between sentences"
"""What to do with a table of words, as Kaggle's set of entities is."""


@dataclass(frozen=True)
class Tagged:
    """The words of a sentence, the label of each, where it stands, and how it is written where a file says so."""

    where: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    written: str | None = None

    @property
    def text(self) -> str:
        """The sentence as it is written, else with a blank between words."""
        return " ".join(self.words) if self.written is None else self.written

    @property
    def parts(self) -> tuple[str, ...]:
        """The sentence."""
        return (self.text,)

    @property
    def whole(self) -> tuple[str, ...]:
        """The same."""
        return self.parts


def read_tagged(
    source: str | Path,
    layer: str | None = None,
    *,
    words: str | None = None,
    tags: str | None = None,
    invalid: Invalid = "error",
    skip_bad: int = 0,
    tell: Callable[[str], None] = logger.warning,
) -> Iterator[Tagged]:
    """Yield the sentences of a source.

    Args:
        source: a file, a named set, or a folder with brat's annotations beside its texts.
        layer: which annotation of a CoNLL-U or BIO file; by default the tags of a BIO file, else upos.
        words: the column of rows with the words, found by its name where it is not said.
        tags: the column of rows with the labels, likewise.
        invalid: what is done with bytes that are no UTF-8.
        skip_bad: so many bad sentences are left out.
        tell: takes how spans of characters were read.

    Raises:
        DataError: a file without the layer or the columns, or words and labels of different number.
    """
    brat = None if is_made(source) else brat_rows(source, skip_bad)
    if is_made(source) or (brat is None and any(format_of(file) in SENTENCES for file in locate(source)[1])):
        for sentence in read_sentences(source, invalid=invalid, skip_bad=skip_bad):
            yield _of_sentence(str(source), sentence, layer)
        return
    if brat is None and not is_made(source) and (text := next(filter(is_plain_text, locate(source)[1]), None)):
        hint = "call a file with a word and its tag a line FILE.conll, and one of Universal Dependencies FILE.conllu"
        raise DataError(f"{text}: the suffix does not say that it holds words with tags", hint)
    columns: list[tuple[str, str]] = []

    def tagged(where: str, row: Mapping[str, Any]) -> Tagged:
        return _of_row(where, row, *columns[0])

    rows = brat or iter(read_placed_rows(source, invalid=invalid, skip_bad=skip_bad))
    for first in islice(rows, 1):
        if spans := span_columns(first[1], words, tags):
            yield from _of_spans(str(source), chain([first], rows), spans, skip_bad, tell)
            return
        columns.append(_columns(*first, words, tags))
        yield from kept(chain([first], rows), tagged, skip_bad)


def _of_spans(
    source: str,
    rows: Iterator[tuple[str, dict[str, Any]]],
    columns: tuple[str, str],
    skip_bad: int,
    tell: Callable[[str], None],
) -> Iterator[Tagged]:
    """Yield rows with spans, and tell how they were read."""
    tally: Counter[str] = Counter()

    def tagged(where: str, row: Mapping[str, Any]) -> Tagged | None:
        words = tagged_words(where, row, columns, tally)
        return None if words is None else Tagged(where, *words)

    yield from (each for each in kept(rows, tagged, skip_bad) if each is not None)
    how = f"spans in {columns[1]}, of the text in {columns[0]}, are read as B- and I- of its words"
    tell(f"{source}: {how}{told(tally, SAID)}")


def _of_sentence(source: str, sentence: Sentence, layer: str | None) -> Tagged:
    own = {name: getattr(sentence, name) for name in LAYERS}
    wanted = layer or next((name for name, values in own.items() if values), LAYERS[0])
    if not own.get(wanted):
        there = ", ".join(name for name, values in own.items() if values) or "none"
        message = f"{source}:{sentence.line}: the words have no {wanted}; annotated are: {there}"
        raise DataError(message, "name another with data.layer")
    return Tagged(f"{source}:{sentence.line}", sentence.words, own[wanted])


def _columns(where: str, row: Mapping[str, Any], words: str | None, tags: str | None) -> tuple[str, str]:
    word_column = words or next((name for name in WORDS if name in row), None)
    labels = tags or next((name for name in TAGS if name in row and name != word_column), None)
    for what, name in (("words", word_column), ("tags", labels)):
        if name is None or name not in row:
            message = f"{where}: no column of {what}{'' if name is None else f' called {name!r}'}"
            raise DataError(
                message, f"it has {', '.join(row)[:200]}; name one with data.{what}; of a word a row, {_A_WORD_A_ROW}"
            )
    assert word_column is not None
    assert labels is not None
    return word_column, labels


def _of_row(where: str, row: Mapping[str, Any], words: str, tags: str) -> Tagged:
    lists: list[Sequence[Any]] = []
    for name in (words, tags):
        value = _listed(where, name, row[name]) if isinstance(row[name], str) else row[name]
        if not isinstance(value, list | tuple) or not value:
            raise bad_record(where, f"column {name!r} is no list of words or labels: {str(row[name])[:60]!r}")
        lists.append(value)
    if len(lists[0]) != len(lists[1]):
        raise bad_record(where, f"{len(lists[0])} words in {words!r}, {len(lists[1])} labels in {tags!r}")
    if wrong := [value for value in lists[0] if not isinstance(value, str) or not value.strip()]:
        raise bad_record(where, f"{wrong[0]!r} is no word")
    if wrong := [value for value in lists[1] if not isinstance(value, str | int) or not str(value).strip()]:
        raise bad_record(where, f"{wrong[0]!r} is no label")
    return Tagged(where, tuple(lists[0]), tuple(str(value).strip() for value in lists[1]))


def _listed(where: str, column: str, text: str) -> Sequence[Any]:
    """Return the list in a cell: as JSON or Python write it, or values with blanks between them."""
    items = list_in(text)
    if items is not None:
        return items
    parts = text.split()
    # Words may be [CLS] a [SEP], or two with a comma behind the first: Yes, sir.
    bracket = text.strip()[:1] == "[" and text.strip()[-1:] == "]" and len(parts[0]) > 1 and "]" not in parts[0]
    if bracket or (len(parts) > 2 and all(len(part) > 1 and part.endswith(",") for part in parts[:-1])):
        what = f"column {column!r} looks like a list, and is neither JSON nor values with blanks between: {text[:60]!r}"
        raise bad_record(where, what)
    return parts
