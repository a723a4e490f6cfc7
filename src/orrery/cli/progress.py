"""A counter for work of unknown length, which appears only where it is waited for."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

PATIENCE = 2.0
"""Seconds before it appears."""

PAUSE = 10.0
"""Seconds between plain lines, where there is no terminal to write over."""

Record = TypeVar("Record")


def watched(
    records: Iterable[Record], what: str = "records", characters: Callable[[Record], int] | None = None
) -> Iterator[Record]:
    """Pass records on; after two seconds show how many, as a moving line on a terminal, else a line now and then.

    Args:
        records: what is read.
        what: their name, in the plural.
        characters: how many a record has, where that is worth telling.
    """
    from time import monotonic

    from rich.console import Console

    console = Console(stderr=True)
    start, shown, read = monotonic(), 0.0, 0
    with console.status("") as status:
        status.stop()
        for number, record in enumerate(records, start=1):
            read += 0 if characters is None else characters(record)
            now = monotonic()
            if now - start > PATIENCE and now - shown > (0.2 if console.is_terminal else PAUSE):
                size = "" if characters is None else f", {read:,} characters"
                shown, line = now, f"{number:,} {what} read{size}, {now - start:.0f} s"
                if console.is_terminal:
                    status.update(line)
                    status.start()
                else:
                    print(line, file=sys.stderr, flush=True)
            yield record
