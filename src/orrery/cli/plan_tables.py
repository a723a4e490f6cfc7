"""`orrery plan --tables`: the tables of the course from published numbers; `--budget`: the compute-optimal size."""

from pathlib import Path
from typing import TYPE_CHECKING

from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.planning.table import PaperTable

PAGE = "tables.html"


def print_tables(output: Path | None = None, *, overwrite: bool = False) -> None:
    """Print every table with its source and notes; with a folder write them there as one page with figures.

    Raises:
        UsageError: the folder cannot be written, or holds a page and ``overwrite`` is not given.
    """
    from orrery.checkpoints.outputs import OutputFile
    from orrery.reports.making import made
    from orrery_course.papers.tables import page, tables

    if output is None:
        for number, table in enumerate(tables()):
            print_one(table, first=number == 0)
        return
    if output.is_file():
        raise UsageError(f"{output} is a file, and --output names a folder", "give a folder; the page is made in it")
    file = OutputFile(output / PAGE, overwrite=overwrite)
    file.write(page(made()))
    print(f"page: {output / PAGE}")


def print_one(table: "PaperTable", *, first: bool = False) -> None:
    """Print one table as plain text."""
    from orrery.cli.tables import print_table

    print(table.title if first else f"\n{table.title}")
    print_table(table.columns, table.rows)
    for note in table.notes:
        print(note)
    print(f"source: {table.source}")


def print_budget(flops: float) -> None:
    """Print the compute-optimal size for a budget by each approach.

    Raises:
        UsageError: a budget that is not a positive finite number.
    """
    from orrery.cli.tables import print_table
    from orrery.planning.table import plain, scientific
    from orrery.planning.training_compute import petaflop_days
    from orrery_course.papers.chinchilla import COLUMNS, budget_rows

    rows = budget_rows(flops)
    print(f"{scientific(flops)} FLOPs, {plain(petaflop_days(flops))} petaflop/s-days: the compute-optimal size")
    print_table(COLUMNS, rows)
    print("approaches 1 to 3: Hoffmann et al. 2022; orrery plan --tables says where they differ, and why")
