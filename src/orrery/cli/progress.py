"""A counter for work of unknown length, which appears only where it is waited for."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
    with _line() as show:
        read = 0
        for number, record in enumerate(records, start=1):
            read += 0 if characters is None else characters(record)
            size = "" if characters is None else f", {read:,} characters"
            show(f"{number:,} {what} read{size}")
            yield record


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told how many of how many are done, and shows it as `watched` shows records.

    Args:
        what: the name of what is done, in the plural.
    """
    with _line() as show:
        yield lambda done, total: show(f"{done:,} of {total:,} {what}")


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows where the work is: after two seconds, and not more often than can be read."""
    from time import monotonic

    from rich.console import Console

    console = Console(stderr=True)
    start, shown = monotonic(), 0.0
    with console.status("") as status:
        status.stop()

        def show(where: str) -> None:
            nonlocal shown
            now = monotonic()
            if now - start > PATIENCE and now - shown > (0.2 if console.is_terminal else PAUSE):
                shown, line = now, f"{where}, {now - start:.0f} s"
                if console.is_terminal:
                    status.update(line)
                    status.start()
                else:
                    print(line, file=sys.stderr, flush=True)

        yield show
