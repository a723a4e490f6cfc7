"""A counter for work of unknown length, which appears only where it is waited for."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

PATIENCE = 2.0
"""Seconds before it appears."""

Record = TypeVar("Record")


def watched(records: Iterable[Record]) -> Iterator[Record]:
    """Pass records on behind a counter that appears, on a terminal, once reading has taken two seconds."""
    from time import monotonic

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.completed:,} records read"), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("read", total=None)
    start = monotonic()
    try:
        for record in records:
            progress.advance(task)
            if monotonic() - start > PATIENCE and progress.console.is_terminal:
                progress.start()
            yield record
    finally:
        progress.stop()
