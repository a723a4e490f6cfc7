"""JSON: one object a line, or a list of objects in a file; their keys are the columns."""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, bad_record, decode, open_text, read_lines
from orrery.data.readers.columns import check_columns
from orrery.errors import DataError

BLOCK = 1 << 16
"""Bytes of a list that are read at once; more are held only where a record is longer."""
LONGEST_RECORD = 1 << 27
"""Characters. A longer record is a bracket or a quote that was never closed, and would fill the memory."""
_SPACE = re.compile(r"[ \t\r\n]*")
_SHOWN = 80
_PANDAS = re.compile(r'\{\s*(?:"(?:[^"\\]|\\.)+"\s*:\s*\{\s*"[0-9]+"\s*:|"columns"\s*:\s*\[)')
"""How a table begins that pandas wrote by columns, as it does unless it is told otherwise, or split."""


def read_lines_of_objects(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, row); empty lines are passed over. Lines may differ in their columns.

    A bad line (not JSON, not an object, not UTF-8, without a wanted column, with a key twice) is a fault.
    """
    for line in read_lines(file):
        if not line.content.strip():
            continue
        try:
            row = _row(line.text(faults.invalid), line.where)
            check_columns(line.where, row, wanted)
        except DataError as error:
            faults.meet(error)
            continue
        yield line.number, row


def read_list_of_objects(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (record number from 1, row) of a list of objects, one in memory at a time; a file of lines as lines.

    A bad record (not an object, not UTF-8, without a wanted column, with a key twice) is a fault. Raises `DataError`
    for other JSON, with the command that converts it, and where the list is broken: nothing behind that is found.
    """
    with open_text(file) as stream:
        text = _Text(stream.read)
        if not text.take("["):
            head, ended = text.beginning()
            if _PANDAS.match(head) and (table := _table(file)) is not None:
                for number, row in enumerate(table, start=1):
                    check_columns(f"{file}:{number}", row, wanted)
                    yield number, row
                return
            _refuse_document(file, head, ended)
            yield from read_lines_of_objects(file, wanted, faults)
            return
        for number, content in enumerate(_elements(file, text), start=1):
            where = f"{file}:{number}"
            try:
                row = _row(decode(content.encode("utf-8", "surrogateescape"), where, faults.invalid), where)
                check_columns(where, row, wanted)
            except DataError as error:
                faults.meet(error)
                continue
            yield number, row


def _elements(file: Path, text: "_Text") -> Iterator[str]:
    """Yield the text of each element behind the opening bracket. Raises `DataError` where the list is broken."""
    number, more = 1, not text.take("]")
    while more:
        yield text.value(f"{file}:{number}")
        number += 1
        more = text.take(",")
        if not more and not text.take("]"):
            raise _broken(f"{file}:{number}", "a comma or the closing bracket is missing")
    if not text.at_end():
        raise DataError(f"{file}: more after the list of records", "a file holds one list; or use JSON lines")


class _Text:
    """The text of a file, one value or mark at a time; bytes that are not UTF-8 are carried on."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._source, self._decoder = read, codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text, self._place, self._ended = "", 0, False
        self._read(BLOCK)
        self._text = self._text.removeprefix("\ufeff")

    def beginning(self) -> tuple[str, bool]:
        """Return what is held, and whether that is all there is."""
        if not self._ended:
            self._read(1)
        return self._text[self._place :], self._ended

    def at_end(self) -> bool:
        """Pass white space and say whether the text ends there."""
        while True:
            self._place = _SPACE.match(self._text, self._place).end()  # type: ignore[union-attr]
            if self._place < len(self._text):
                return False
            if self._ended:
                return True
            self._read(BLOCK)

    def take(self, mark: str) -> bool:
        """Pass white space and the mark, if it stands there, and say whether it did."""
        here = not self.at_end() and self._text[self._place] == mark
        self._place += here
        return here

    def value(self, where: str) -> str:
        """Pass the next value and return its text. Raises `DataError` where there is none."""
        self.at_end()
        while True:
            try:
                end = self._json.raw_decode(self._text, self._place)[1]
            except (ValueError, RecursionError) as error:
                if self._ended or len(self._text) - self._place > LONGEST_RECORD:
                    raise _broken(where, error.msg if isinstance(error, json.JSONDecodeError) else str(error)) from None
            else:
                if end < len(self._text) or self._ended:  # else the digits of a number may go on in the next block
                    content, self._place = self._text[self._place : end], end
                    return content
            self._read(max(BLOCK, len(self._text) - self._place))

    def _read(self, count: int) -> None:
        content = self._source(count)
        self._ended = not content
        self._text = self._text[self._place :] + self._decoder.decode(content, final=self._ended)
        self._place = 0


def _table(file: Path) -> list[dict[str, Any]] | None:
    """Return the rows of a table that pandas wrote, which is read whole; nothing for other JSON."""
    with open_text(file) as stream, suppress(ValueError, RecursionError):
        content = json.loads(stream.read().decode("utf-8-sig"))
        names = content.get("columns")
        if isinstance(names, list) and isinstance(content.get("data"), list):
            return [dict(zip(map(str, names), values, strict=True)) for values in content["data"]]
        columns = list(content.values())
        if all(isinstance(column, dict) and list(column) == list(columns[0]) for column in columns):
            return [{name: column[key] for name, column in content.items()} for key in columns[0] if key.isdecimal()]
    return None


def _refuse_document(file: Path, text: str, is_document: bool) -> None:
    """Raise `DataError` for JSON that is neither empty nor begins as lines of objects do."""
    first, _, more = text.partition("\n")
    row: Any = None
    with suppress(ValueError, RecursionError):
        row = json.loads(text) if is_document else None
    if isinstance(row, dict):
        lists = [key for key, inner in row.items() if isinstance(inner, list) and inner and _is_record(inner[0])]
        if lists:
            command = f"jq -c '.[{json.dumps(lists[0])}][]' FILE > NEW.jsonl"
            fault = f"{file}: one object with the keys {', '.join(row)[:_SHOWN]}, not a list of records"
            raise DataError(fault, f"write the records in it as JSON lines: `{command}`")
        if len(row) > 1 and all(isinstance(inner, dict) for inner in row.values()):
            if named := next((str(inner["file_name"]) for inner in row.values() if "file_name" in inner), None):
                raise DataError(
                    f"{file}: LLaMA-Factory's list of data sets", f"name one of them: {file.parent / named}"
                )
            fault = f"{file}: one object with {len(row):,} objects by name, not a list of records"
            raise DataError(fault, "write the records in it as JSON lines: `jq -c '.[]' FILE > NEW.jsonl`")
    if text and (not text.startswith("{") or (first.strip() == "{" and more)):
        raise DataError(
            f"{file}: no JSON lines and no list of records", "write records as JSON lines: `jq -c . FILE > NEW.jsonl`"
        )


def _broken(where: str, reason: str) -> DataError:
    return DataError(f"{where}: not JSON: {reason}", "nothing behind that place can be read; mend it")


def _row(text: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(text, object_pairs_hook=_without_doubled)
    except _DoubledKeyError as error:
        raise bad_record(where, f"two keys {str(error)[:_SHOWN]!r} in one object") from None
    except (ValueError, RecursionError) as error:
        if re.match(r"\{\s*u?'", text):
            code = "import ast, json, sys; [print(json.dumps(ast.literal_eval(each))) for each in sys.stdin]"
            message = f"{where}: an object as Python prints it, in single quotes, and no JSON"
            raise DataError(message, f'python -c "{code}" < FILE > NEW.jsonl') from None
        raise bad_record(where, f"not JSON: {error}") from None
    if isinstance(row, list) and _is_record(row):
        return {"text": row[0], **row[1]}
    if not isinstance(row, dict):
        raise bad_record(where, f"not an object but {type(row).__name__}")
    return row


def _is_record(value: Any) -> bool:
    """Say whether a value is an object, or a text and what is annotated in it, as spaCy 2 is trained on."""
    if isinstance(value, list):
        return list(map(type, value)) == [str, dict] and "text" not in value[1]
    return isinstance(value, dict)


def _without_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DoubledKeyError(next(name for name in names if names.count(name) > 1))
    return row


class _DoubledKeyError(Exception):
    """One object has two values under one key."""
