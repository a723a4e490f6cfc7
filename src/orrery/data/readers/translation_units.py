"""Translation memories: TMX, whose units have a text in each language, and XLIFF with a source and a target."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from orrery.data.files import Faults, bad_record, open_binary
from orrery.data.readers.columns import check_columns
from orrery.errors import DataError

_CODES = ("bpt", "ept", "ph", "it", "x", "bx", "ex", "ut", "note")
"""Elements within a text that hold the marks of another format, and no words."""
_LANGUAGES = ("{http://www.w3.org/XML/1998/namespace}lang", "lang")
_UNITS = ("tu", "trans-unit", "segment")
"""What TMX and the two versions of XLIFF call one."""


def read_units(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of the unit from 1, row): the text of each language, or ``source`` and ``target``.

    A unit without a wanted column, or with two texts of one language, is a fault. One in memory at a time.

    Raises:
        DataError: the file is no XML, and nothing behind that place can be read.
    """
    number = 0
    with open_binary(file) as stream:
        try:
            above: list[ElementTree.Element] = []
            for event, element in ElementTree.iterparse(stream, ("start", "end")):
                if event == "start":
                    above.append(element)
                    continue
                above.pop()
                if _name(element) not in _UNITS:
                    continue
                number += 1
                where = f"{file}:{number}"
                try:
                    row = _row(element, where)
                    check_columns(where, row, wanted)
                except DataError as error:
                    faults.meet(error)
                else:
                    yield number, row
                if above:
                    above[-1].remove(element)  # else all that was read stays in memory
        except ElementTree.ParseError as error:
            raise DataError(f"{file}: not XML: {error}", "nothing behind that place can be read; mend it") from None


def _row(unit: ElementTree.Element, where: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for part in unit:
        name, texts = _name(part), [each for each in part if _name(each) == "seg"]
        column = next((part.get(key) for key in _LANGUAGES if part.get(key)), None) if name == "tuv" else name
        if name not in ("tuv", "source", "target"):
            continue
        if column is None or column in row:
            raise bad_record(where, "a text without a language" if column is None else f"two texts in {column}")
        row[column] = _said(texts[0] if texts else part)
    return row


def _said(element: ElementTree.Element) -> str:
    """Return the words of a text."""
    inner = ("" if _name(part) in _CODES else _said(part) for part in element)
    return (element.text or "") + "".join(text + (part.tail or "") for text, part in zip(inner, element, strict=True))


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
