"""What the verbs of tasks read: texts of the command line, of a file or of a pipe, and how their answers are shown."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from orrery.cli.console import printable
from orrery.cli.numbers import COUNT
from orrery.data.pictures.endings import ENDINGS
from orrery.errors import DataError, UsageError
from orrery.schema.keys import Known
from orrery.schema.unknown import UnknownSettingError

Format = Literal["text", "jsonl", "csv", "tsv"]
_FILES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Endings of names that are no texts."""
_LISTED = 10
"""Lines that are named where rows are passed over."""
_ENDS: Mapping[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv"}


@Parameter(name="*")
@dataclass(frozen=True)
class TextReading:
    """Where texts come from, and how many are computed at once."""

    file: Annotated[Path | None, Parameter(help="A file with a text a line, or a row a text: .jsonl, .csv, .tsv.")] = (
        None
    )
    format: Annotated[Format | None, Parameter(help="Of --file or of standard input, beside what the name says.")] = (
        None
    )
    column: Annotated[str, Parameter(help="The column of the texts, where there are rows.")] = "text"
    batch_size: Annotated[int, COUNT, Parameter(help="Texts computed at once.")] = 8
    json: Annotated[bool, Parameter(help="Print a JSON object a line.", negative="")] = False


READING = TextReading()
"""What is done unless told otherwise."""


class InputText(NamedTuple):
    """One input: what errors call it, its texts by column, and whether one of them is missing, so that it is passed."""

    where: str
    fields: dict[str, str]
    blank: bool = False


def read(texts: Sequence[str], reading: TextReading, columns: Sequence[str] | None = None) -> list[InputText]:
    """Return the inputs of a verb: the texts of its command line, else the lines or rows of a file or of a pipe.

    A row whose text is empty or missing is passed over, which is said: the others are answered.

    Args:
        texts: those of the command line.
        reading: where the others come from.
        columns: what a row must have; by default ``reading.column``.

    Raises:
        UsageError: a file beside texts, or neither.
        DataError: a bad line, which is named, or none at all.
    """
    wanted = tuple(columns or (reading.column,))
    if unknown := [text for text in texts if text.startswith("--")]:
        raise UnknownSettingError(unknown[0], Known(), "a text that begins so: --file FILE")
    if texts:
        if reading.file is not None:
            raise UsageError("give either texts or --file, not both", "leave one of them out")
        _tell_of_files(texts)
        kinds = ("picture" if is_picture(text) else "text" for text in texts)
        return [
            InputText(f"{kind} {n}", {wanted[0]: text})
            for n, (kind, text) in enumerate(zip(kinds, texts, strict=True), 1)
        ]
    if reading.file is None and sys.stdin.isatty():
        raise UsageError("there is no text", "give one, or --file FILE, or lines on standard input")
    with _source(reading.file) as file:
        inputs = list(_rows(file, _format(file, reading.format), wanted))
    if not inputs:
        raise DataError(f"{reading.file or 'standard input'} has no lines", "give it at least one text")
    tell_of_blanks(reading.file, [one.where.rpartition(":")[2] for one in inputs if one.blank], len(inputs))
    return inputs


def tell_of_blanks(file: Path | None, passed: Sequence[str], rows: int) -> None:
    """Say which lines of a file, or of standard input, have no text, if any."""
    if not passed:
        return
    listed = ", ".join(passed[:_LISTED]) + (", ..." if len(passed) > _LISTED else "")
    lines = f"line{'s' * (len(passed) > 1)} {listed}"
    message = f"without a text, and passed over: {len(passed):,} of {rows:,} rows ({lines})"
    print(f"{file or 'standard input'}: {message}", file=sys.stderr)


def is_picture(text: str) -> bool:
    """Say whether a word of the command line names a file of a picture, by its ending."""
    return Path(text).suffix.lower() in ENDINGS


def _tell_of_files(texts: Sequence[str]) -> None:
    """Say of texts that are the names of files that the names themselves are read, and how the files would be."""
    for text in texts:
        if is_picture(text):
            continue  # for a model that reads them
        with suppress(OSError, ValueError):  # too long or impossible for a name
            there = Path(text).is_file()
            if there or (Path(text).suffix.lower() in _FILES and len(text.split()) == 1):
                what = "is the name of a file" if there else "looks like the name of a file"
                message = f"note: {printable(text)!r} {what}, and is read as a text of its own"
                print(f"{message}; --file {printable(text)} reads the file", file=sys.stderr)


def run(
    answer: Callable[[list[Any], list[str]], Iterable[Any]], given: Sequence[InputText], inputs: list[Any]
) -> list[Any]:
    """Return what a pipeline answers to inputs, and nothing to those that are passed over; errors name their lines."""
    from orrery.reports.status import waiting

    with_text = [number for number, one in enumerate(given) if not one.blank]
    results: list[Any] = [None] * len(given)
    with waiting() as line:
        line.now(f"{len(with_text):,} texts")
        answers = answer([inputs[n] for n in with_text], [given[n].where for n in with_text]) if with_text else []
        for number, one in zip(with_text, answers, strict=True):
            results[number] = one
    return results


def one_line(text: str) -> str:
    r"""Return a text on one line, with control characters escaped."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def print_json(record: Mapping[str, Any]) -> None:
    """Print an object on a line."""
    import json

    print(json.dumps(record, ensure_ascii=False))


def _format(file: Path, format: Format | None) -> Format:
    return format or _ENDS.get(file.suffix.lower(), "text")


@contextmanager
def _source(file: Path | None) -> Iterator[Path]:
    """Yield the file, or one that holds what comes on standard input; errors then say so."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "input"
        if file is None:
            place.write_bytes(sys.stdin.buffer.read())
        try:
            yield file or place
        except DataError as error:
            raise DataError(error.message.replace(str(place), "standard input"), error.hint) from None


def _rows(file: Path, kind: Format, columns: tuple[str, ...]) -> Iterator[InputText]:
    """Yield the lines or rows of a file."""
    from orrery.data.files import Faults, read_lines
    from orrery.data.readers.json_records import read_lines_of_objects
    from orrery.data.readers.tables import read_csv, read_tsv

    if kind == "text":
        if len(columns) > 1:
            hint = f"write {' and '.join(columns)} into the columns of a .jsonl or .csv file"
            raise DataError(f"{file}: lines of text hold one text each", hint)
        lines = ((line.where, line.text("error")) for line in read_lines(file))
        yield from (InputText(where, {columns[0]: text}, not text.strip()) for where, text in lines)
        return
    reader = {"jsonl": read_lines_of_objects, "csv": read_csv, "tsv": read_tsv}[kind]
    for number, row in reader(file, columns, Faults()):
        where = f"{file}:{number}"
        fields = {column: "" if row[column] is None else row[column] for column in columns}
        for column, value in fields.items():
            if not isinstance(value, str):
                raise DataError(f"{where}: {column} is {str(value)[:40]!r}, no text", "mend the line")
        yield InputText(where, fields, not all(text.strip() for text in fields.values()))
