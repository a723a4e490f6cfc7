"""Questions with a text that holds the answer: SQuAD's files, and rows with the columns that they have elsewhere."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.data.corpora import is_made, locate, read_placed_rows
from orrery.data.files import Invalid, bad_record, kept, open_text
from orrery.data.readers.columns import text_of, truth_of
from orrery.errors import DataError

CONTEXTS = ("context", "passage", "paragraph", "document", "text")
QUESTIONS = ("question", "query")
ANSWERS = ("answers", "answer")
"""Names of the columns of rows, the likeliest first."""


@dataclass(frozen=True)
class Answer:
    """A part of the context: its text, and the character at which it starts."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question, the text that it is about, and every answer that counts as right; none where the text has none."""

    where: str
    name: str
    question: str
    context: str
    answers: tuple[Answer, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The text: its questions are held back together."""
        return (self.context,)

    @property
    def whole(self) -> tuple[str, ...]:
        """The text and the question."""
        return (self.context, self.question)


def read_questions(source: str | Path, *, invalid: Invalid = "error", skip_bad: int = 0) -> Iterator[Question]:
    """Yield the questions of a source: SQuAD's nested JSON, or rows with context, question and answers.

    Answers are ``{"text": [...], "answer_start": [...]}``, a list of ``{"text", "answer_start"}``, or a text, which
    stands at the column ``answer_start`` or is looked for in the context.

    Raises:
        DataError: a column is not there, or an answer does not stand where it is said to; its place is named.
    """
    files = [] if is_made(source) else locate(source)[1]
    yield from kept(_rows(source, files, invalid, skip_bad), _question, skip_bad)


def _rows(
    source: str | Path, files: Sequence[Path], invalid: Invalid, skip_bad: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of SQuAD's nested files, or of any other."""
    for file in files:
        nested = _nested(file) if file.suffix == ".json" else None
        if nested is not None:
            yield from nested
            return
    yield from read_placed_rows(source, invalid=invalid, skip_bad=skip_bad)


def _nested(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
    """Return the questions of a file of SQuAD, or nothing for another one."""
    with open_text(file) as stream:
        if stream.peek(4).removeprefix(BOM_UTF8)[:1] != b"{":  # type: ignore[attr-defined]
            return None
        try:
            content = json.loads(stream.read().decode("utf-8-sig"))
        except ValueError:
            return None  # JSON lines: the reader of rows tells what is wrong with them
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        return None
    return _flat(file, content["data"])


def _flat(file: Path, articles: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the questions of articles, or of a list of questions each beside its text, as run_qa.py has them."""
    for number, article in enumerate(articles):
        place = f"{file}: data[{number}]"
        if isinstance(article, Mapping) and "question" in article:
            yield place, article
            continue
        if not isinstance(article, Mapping) or not isinstance(article.get("paragraphs"), list):
            raise DataError(
                f"{place} has no paragraphs and no question", "a file of SQuAD's has data[].paragraphs[].qas[]"
            )
        for count, paragraph in enumerate(article["paragraphs"]):
            for each, question in enumerate(paragraph.get("qas", ())):
                yield f"{place}.paragraphs[{count}].qas[{each}]", {**question, "context": paragraph.get("context")}


def _question(where: str, row: Mapping[str, Any]) -> Question:
    names = []
    for what, known in (("context", CONTEXTS), ("question", QUESTIONS), ("answers", ANSWERS)):
        name = next((each for each in known if each in row), None)
        if name is None:
            raise DataError(
                f"{where}: no column of the {what}", f"call it {known[0]}; there are {', '.join(row)[:200]}"
            )
        names.append(name)
    context, question = text_of(row, names[0], where), text_of(row, names[1], where)
    for name, text in zip(names, (context, question), strict=False):
        if not text.strip():
            raise bad_record(where, f"column {name!r} is empty")
    given = _opened(row[names[2]])
    if isinstance(given, str) and given and (start := _start(row.get("answer_start"))) is not None:
        given = [{"text": given, "answer_start": start}]
    answers = () if truth_of(row.get("is_impossible")) else _answers(where, given, context)
    return Question(where, str(row.get("id", where)), question, context, answers)


def _start(value: Any) -> int | None:
    """Return where an answer is said to stand: a number, also as a table writes it, or one alone in a list."""
    if isinstance(value, list | tuple) and len(value) == 1:
        return _start(value[0])
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"\s*[0-9]{1,15}\s*", value) else None
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def _opened(value: Any) -> Any:
    """Return answers that a table holds as a text in JSON; any other value as it is, as an answer in braces."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[{")):
        return value
    try:
        answers = json.loads(value)
    except (ValueError, RecursionError):
        return value
    first = answers[0] if isinstance(answers, list) else answers
    return answers if isinstance(first, dict) and "text" in first else value


def _answers(where: str, value: Any, context: str) -> tuple[Answer, ...]:
    if isinstance(value, str):
        value = [{"text": value, "answer_start": context.find(value)}] if value else []
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        value = [value]
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        starts = value.get("answer_start") or [context.find(str(text)) for text in value["text"]]
        if not isinstance(starts, list | tuple) or len(starts) != len(value["text"]):
            raise bad_record(where, f"{len(value['text'])} texts of answers, and answer_start {str(starts)[:40]}")
        value = [{"text": text, "answer_start": start} for text, start in zip(value["text"], starts, strict=True)]
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise bad_record(where, f"answers are no list of text and answer_start: {str(value)[:60]!r}")
    return tuple(_answer(where, item, context) for item in value)


def _answer(where: str, item: Mapping[str, Any], context: str) -> Answer:
    text, start = item.get("text"), item.get("answer_start")
    if not isinstance(text, str) or not text.strip():
        raise bad_record(where, f"an answer without a text: {str(dict(item))[:60]!r}")
    start = context.find(text) if start is None else start
    if not isinstance(start, int) or context[max(0, start) : max(0, start) + len(text)] != text or start < 0:
        raise bad_record(where, f"the answer {text[:40]!r} does not stand in the context at character {start}")
    return Answer(text, start)
