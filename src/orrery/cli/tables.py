"""Rows in columns: drawn on a terminal, aligned plain text, which nothing wraps, everywhere else."""

import sys
from collections.abc import Sequence

from orrery.cli.console import printable


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; cells come from files, so their control characters are escaped."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(columns, cells)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in (columns, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)
