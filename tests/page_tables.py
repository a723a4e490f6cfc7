"""The tables of an HTML page as texts, for tests."""

import re
from html import unescape

_TABLE = re.compile(r"<table[^>]*>(.*?)</table>", re.DOTALL)
_ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.DOTALL)


def tables(page: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the heads and the rows of every table of a page, in its order."""
    return [(_cells("th", match), _rows(match)) for match in _TABLE.findall(page)]


def _rows(table: str) -> list[list[str]]:
    return [cells for row in _ROW.findall(table) if (cells := _cells("td", row))]


def _cells(kind: str, markup: str) -> list[str]:
    return [unescape(cell) for cell in re.findall(rf"<{kind}\b[^>]*>(.*?)</{kind}>", markup, re.DOTALL)]
