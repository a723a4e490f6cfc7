"""Sentences as blocks of lines, one word a line, with an empty line behind each."""

from collections.abc import Iterator
from pathlib import Path

from orrery.data.files import Line, read_lines
from orrery.errors import DataError

MOST_LINES = 100_000
"""Of a sentence. More are a file that has no sentences, and would fill the memory."""


def read_blocks(file: Path) -> Iterator[list[Line]]:
    """Yield the lines of each sentence; a line of blanks and tabs alone is an empty one.

    Raises `DataError` where no empty line comes.
    """
    block: list[Line] = []
    for line in read_lines(file):
        if line.content.strip(b" \t\r\n"):
            block.append(line)
        elif block:
            yield block
            block = []
        if len(block) > MOST_LINES:
            what = f"{block[0].where}: {MOST_LINES:,} lines without an empty one"
            raise DataError(what, "an empty line ends a sentence; is the file of another format?")
    if block:
        yield block
