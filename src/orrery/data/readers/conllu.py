"""CoNLL-U: sentences with lemmas, tags, features and trees (universaldependencies.org/format)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from orrery.data.files import Faults, Invalid, Line, bad_record
from orrery.data.readers.blocks import read_blocks
from orrery.data.records import Sentence
from orrery.errors import DataError

COLUMNS = 10
_NUMBER = re.compile(r"[0-9]{1,7}")
_ID = re.compile(r"([1-9][0-9]{0,6})(?:-([1-9][0-9]{0,6}))?|[0-9]{1,7}\.[1-9][0-9]{0,6}")


class ConlluToken(NamedTuple):
    """One line of columns: a word, a surface token over several words ("2-3"), or an empty node ("2.1")."""

    line: Line
    columns: list[str]
    first: int | None
    last: int | None

    @property
    def is_word(self) -> bool:
        """Whether it is a word of the sentence."""
        return self.first is not None and self.last is None


def read_sentences(file: Path, faults: Faults) -> Iterator[Sentence]:
    """Yield the sentences; a bad line makes its sentence a fault.

    Words have whole ids. Surface tokens and empty nodes are no words; the former count for the text, which is
    the comment ``# text`` or else is put together from the forms. ``# newdoc`` starts a document.
    """
    for block in read_blocks(file):
        try:
            sentence = _sentence(block, faults.invalid)
        except DataError as error:
            faults.meet(error)
            continue
        yield sentence


def _sentence(block: list[Line], invalid: Invalid) -> Sentence:
    comments: dict[str, str] = {}
    tokens = []
    for line in block:
        text = line.text(invalid)
        if text.startswith("#"):
            key, _, value = text[1:].partition("=")
            comments[key.strip()] = value.removeprefix(" ")
        else:
            tokens.append(_token(line, text))
    words = [token for token in tokens if token.is_word]
    _check_numbers(block[0], words)
    layers = list(zip(*(word.columns for word in words), strict=True))
    return Sentence(
        line=block[0].number,
        name=comments.get("sent_id", "").strip() or str(block[0].number),
        text=comments.get("text") or surface(tokens),
        words=layers[1],
        lemmas=layers[2],
        upos=layers[3],
        xpos=layers[4],
        feats=tuple(_features(word) for word in words),
        heads=tuple(_head(word, len(words)) for word in words),
        deprels=layers[7],
        starts_document=any(key.split(" ")[0] == "newdoc" for key in comments),
    )


def _token(line: Line, text: str) -> ConlluToken:
    columns = text.split("\t")
    if len(columns) != COLUMNS:
        spaces = (
            "; tabs separate columns, and it has spaces" if len(text.split()) >= COLUMNS and "\t" not in text else ""
        )
        raise bad_record(line.where, f"{len(columns)} columns instead of {COLUMNS}: {text[:40]!r}{spaces}")
    if not all(columns):
        raise bad_record(line.where, f"column {columns.index('') + 1} is empty; '_' says unspecified")
    match = _ID.fullmatch(columns[0])
    if not match:
        raise bad_record(
            line.where, f"{columns[0]!r} is not the id of a word, of words (2-3), or of an empty node (2.1)"
        )
    first, last = (int(part) if part else None for part in match.groups())
    return ConlluToken(line, columns, first, last)


def _check_numbers(start: Line, words: list[ConlluToken]) -> None:
    if not words:
        raise bad_record(start.where, "a sentence without words")
    for number, word in enumerate(words, start=1):
        if word.first != number:
            raise bad_record(word.line.where, f"word {word.first} where word {number} should stand")


def _features(word: ConlluToken) -> Mapping[str, str]:
    features = word.columns[5]
    if features == "_":
        return {}
    pairs = [pair.partition("=") for pair in features.split("|")]
    if not all(name and mark and value for name, mark, value in pairs):
        raise bad_record(word.line.where, f"features are not Name=Value|Name=Value: {features[:40]!r}")
    return {name: value for name, _, value in pairs}


def _head(word: ConlluToken, count: int) -> int | None:
    head = word.columns[6]
    if head == "_":
        return None
    if not _NUMBER.fullmatch(head) or int(head) > count or int(head) == word.first:
        raise bad_record(word.line.where, f"head {head[:20]!r} of word {word.first} in a sentence of {count}")
    return int(head)


def surface(tokens: list[ConlluToken]) -> str:
    """Return the text that the forms and SpaceAfter=No spell; a surface token stands for the words it covers."""
    text = ""
    covered = 0
    for token in tokens:
        if token.first is None or token.first <= covered:
            continue
        covered = token.last or token.first
        text += token.columns[1] + ("" if "SpaceAfter=No" in token.columns[9].split("|") else " ")
    return text.rstrip(" ")
