"""Spans of characters with labels, as annotators' tools write them, and the tags of the words that they make."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from orrery.data.files import bad_record, decode, kept, open_text
from orrery.data.readers.columns import check_columns, list_in, text_of
from orrery.data.rows import annotated
from orrery.data.rows.labelled import TEXTS
from orrery.errors import DataError

WORDS, NER = "tokenized_text", "ner"
"""GLiNER's columns: words, and spans whose ends count words and are part of them."""
SPANS = ("spans", "entities", "label", "labels", "annotations")
"""Names of a column with spans: Prodigy's, spaCy's, and Doccano's of three versions, the likeliest first."""
STARTS, ENDS, LABELS = ("start", "start_offset"), ("end", "end_offset"), ("label", "labels", "tag", "type")
"""What the parts of a span are called, the likeliest first."""
OUTSIDE = "O"
_NESTED, _CUT, _UNITS = "nested", "cut", "units"
SAID = annotated.SAID | {
    _NESTED: "{} spans left out: a word has one label, and the longest span over it gives it",
    _CUT: "{} spans begin or end within a word, and label the whole word",
    _UNITS: "{} rows count characters as JavaScript does (an emoji is two), and are read so",
}
"""What is said of how many spans or rows."""


class Span(NamedTuple):
    """A part of a text, or of a list of words: its ends, the label, and what it says where the file repeats that."""

    start: int
    end: int
    label: str
    said: str | None = None


class TaggedText(NamedTuple):
    """The words of a text, their tags, and the text as it stands; nothing where the words are all there is."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    text: str | None


def span_columns(row: Mapping[str, Any], words: str | None, tags: str | None) -> tuple[str, str] | None:
    """Return the columns of a text and of the spans in it, where a row has such; ``words`` and ``tags`` name them."""
    row = {**row["data"], SPANS[0]: []} if annotated.is_task(row) else row
    if {WORDS, NER} <= set(row):
        return WORDS, NER
    texts = [name for name in ((words,) if words else TEXTS) if isinstance(row.get(name), str)]
    known = (tags,) if tags else SPANS
    spans = [name for name in known if name in row and (items := _items(row[name])) is not None and _are_spans(items)]
    if not spans and annotated.is_answered(row):
        spans = [tags or SPANS[0]]  # Prodigy writes none where nothing was marked
    return (texts[0], spans[0]) if texts and spans else None


def tagged_words(
    where: str, row: Mapping[str, Any], columns: tuple[str, str], tally: Counter[str]
) -> TaggedText | None:
    """Return the words of a row with the tags that its spans give them, B- for the first and I- for others.

    Args:
        where: the place of the row.
        row: it.
        columns: of the text and of the spans.
        tally: counts what is to be said of all rows.

    Returns:
        Nothing of a row that its annotator left out.

    Raises:
        DataError: a span is none, lies outside of its text, or repeats what does not stand there.
    """
    counted = annotated.counting(row, tally)
    if counted is None:
        return None
    row = counted
    check_columns(where, row, columns[:1])
    spans = [span for item in _items(row.get(columns[1])) or () for span in _spans(where, item)]
    if columns == (WORDS, NER):
        words = row[WORDS]
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(word, str) and word.strip() for word in words)
        ):
            raise bad_record(where, f"column {WORDS!r} is no list of words: {str(words)[:60]!r}")
        spans = [span._replace(end=span.end + 1) for span in spans]
        return TaggedText(
            tuple(words), _tags(where, [(n, n + 1) for n in range(len(words))], len(words), spans, tally), None
        )
    text = text_of(row, columns[0], where)
    places = places_of(text)
    if not places:
        raise bad_record(where, f"column {columns[0]!r} is empty")
    spans = _in_characters(text, places, spans, tally)
    if wrong := [span for span in spans if not _says(text, span)]:
        there = text[max(0, wrong[0].start) : wrong[0].end]
        raise bad_record(
            where, f"the span {list(wrong[0][:2])} says {str(wrong[0].said)[:40]!r}, its text {there[:40]!r}"
        )
    tags = _tags(where, places, len(text), spans, tally)
    return TaggedText(tuple(text[start:end] for start, end in places), tags, text)


def places_of(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text stand: what is between blanks, each mark and each CJK character by itself."""
    places: list[tuple[int, int]] = []
    begin = 0
    for place, character in enumerate(f"{text} "):
        if not _joins(character):
            places += [(begin, place)] if begin < place else []
            places += [] if character.isspace() else [(place, place + 1)]
            begin = place + 1
    return places


def brat_rows(source: str | Path, skip_bad: int = 0) -> Iterator[tuple[str, dict[str, Any]]] | None:
    """Return the texts of a folder, or of one file, that have brat's .ann beside them; nothing where there is none.

    ``skip_bad`` says how many damaged files are left out.

    Raises:
        DataError: a file of annotations has no text, or a line of it is no span.
    """
    path = Path(source)
    files = sorted(path.rglob("*.ann")) if path.is_dir() else [path.with_suffix(".ann")]
    if not path.exists() or path.suffix not in ("", ".txt", ".ann") or not files or not files[0].is_file():
        return None
    return kept(((f"{file}", file) for file in files), lambda where, file: (where, _brat(file)), skip_bad)


def _brat(file: Path) -> dict[str, Any]:
    texts = []
    for each in (file.with_suffix(".txt"), file):
        with open_text(each) as stream:
            texts.append(decode(stream.read(), str(each), "error"))
    spans = []
    for number, line in enumerate(texts[1].splitlines(), start=1):
        if line.startswith("T"):  # others are relations, events, attributes and notes
            _, _, rest = line.partition("\t")
            place, _, said = rest.partition("\t")
            parts = place.replace(";", " ").split()
            label, ends = "".join(parts[:1]), parts[1:]
            if len(ends) < 2 or not all(end.isdecimal() for end in ends):
                raise DataError(f"{file}:{number}: no span of characters: {line[:60]!r}", "write T1, PER 0 5, and text")
            # One in several parts labels all from its first to its last.
            whole = said if len(ends) == 2 else None
            spans.append({"start": int(ends[0]), "end": int(ends[-1]), "label": label, "text": whole})
    return {"text": texts[0], "spans": spans}


@cache
def _joins(character: str) -> bool:
    """Say whether a character is part of a word with those beside it."""
    cjk = unicodedata.name(character, "").startswith(("CJK ", "HIRAGANA ", "KATAKANA "))
    return not (character.isspace() or cjk or unicodedata.category(character)[0] in "PS")


def _items(value: Any) -> list[Any] | None:
    """Return a list of spans, also one that a table holds as a text."""
    items = list_in(value) if isinstance(value, str) and value.lstrip().startswith(("[{", "[[", "[]")) else value
    return list(items) if isinstance(items, list | tuple) else None


def _are_spans(items: Sequence[Any]) -> bool:
    return all(
        (isinstance(item, list | tuple) and [type(each) for each in item[:3]] == [int, int, str])
        or (isinstance(item, Mapping) and any(name in item for name in STARTS) and any(name in item for name in ENDS))
        for item in items
    )


def _spans(where: str, item: Any) -> Iterator[Span]:
    """Yield the span of an item, once for each of its labels."""
    if isinstance(item, Mapping):
        start, end, labels = (next((item[n] for n in names if n in item), None) for names in (STARTS, ENDS, LABELS))
        said = item.get("text")
    else:
        (start, end, labels), said = item[:3] if isinstance(item, list | tuple) and len(item) > 2 else [None] * 3, None
    names: list[Any] = labels if isinstance(labels, list) else [labels]
    if type(start) is not int or type(end) is not int or not all(isinstance(name, str) and name for name in names):
        raise bad_record(where, f"no span with a start, an end and a label: {str(item)[:80]}")
    for name in names:
        yield Span(start, end, name, said if isinstance(said, str) and said else None)


def _in_characters(text: str, places: Sequence[tuple[int, int]], spans: list[Span], tally: Counter[str]) -> list[Span]:
    """Return spans whose ends count characters, where they may count the units of UTF-16, as browsers do."""
    if text.isascii() or max(text) <= "\uffff" or _fit(text, places, spans):
        return spans
    place_of = {unit: place for place, unit in enumerate(accumulate((1 + (c > "\uffff") for c in text), initial=0))}
    moved = [span._replace(start=place_of.get(span.start, -1), end=place_of.get(span.end, -1)) for span in spans]
    if not _fit(text, places, moved):
        return spans
    tally[_UNITS] += 1
    return moved


def _fit(text: str, places: Sequence[tuple[int, int]], spans: Sequence[Span]) -> bool:
    """Say whether all spans say what they repeat; those that repeat nothing begin and end where words do."""
    begins, ends = {start for start, _ in places}, {end for _, end in places}
    return all(
        0 <= span.start < span.end <= len(text)
        and (_says(text, span) if span.said else span.start in begins and span.end in ends)
        for span in spans
    )


def _says(text: str, span: Span) -> bool:
    return span.said is None or text[span.start : span.end].split() == span.said.split()


def _tags(
    where: str, places: Sequence[tuple[int, int]], length: int, spans: Sequence[Span], tally: Counter[str]
) -> tuple[str, ...]:
    """Return the tag of each word. Raises `DataError` for a span that holds none."""
    tags = [OUTSIDE] * len(places)
    starts, ends = ([place[side] for place in places] for side in (0, 1))
    for span in sorted(spans, key=lambda each: (each.start - each.end, each.start)):
        held = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
        if not 0 <= span.start < span.end <= length or not held:
            what = f"the span [{span.start}, {span.end}] of a {span.label} holds nothing of the {length} that there are"
            raise bad_record(where, what)
        if any(tags[n] != OUTSIDE for n in held):
            tally[_NESTED] += 1
            continue
        tally[_CUT] += places[held[0]][0] < span.start or span.end < places[held[-1]][1]
        tags[held[0] : held[-1] + 1] = [f"B-{span.label}", *[f"I-{span.label}"] * (len(held) - 1)]
    return tuple(tags)
