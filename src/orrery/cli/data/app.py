"""`orrery data`: which data sets there are, get one from its origin, make token shards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from orrery.cli.data.clean import clean
from orrery.cli.data.prepare import prepare, verify
from orrery.cli.numbers import COUNT_OR_NONE

if TYPE_CHECKING:
    from orrery.data.generated import Made
    from orrery.data.sets import DataSet

app = App(name="data", help="Show, fetch, clean, prepare and verify texts and named data sets.")
app.command(prepare)
app.command(verify)
app.command(clean)


@app.command
def show(
    source: str | None = None,
    target: str | None = None,
    /,
    *,
    count: Annotated[int | None, COUNT_OR_NONE, Parameter(name="--examples")] = None,
    column: str = "text",
) -> None:
    """Show every named data set, one of them with its files, or what a file, folder or part of a set holds.

    Parameters
    ----------
    source
        A data set (banking77); a part of one (banking77/train), a file or a folder; without it, all sets in a table.
    target
        The other side, where the source is one side of parallel text.
    count
        Number of documents, sentences or pairs to print (3 where not given); of a whole set none unless given.
    column
        Column of the text in JSON lines, CSV and Parquet; a number for a table without a line of names.
    """
    from orrery import settings
    from orrery.data import generated, sets

    if source is None:
        _print_table(settings.data_folder())
        return
    if target is None and count is None and source in generated.names() and (made := generated.find(source)):
        _print_made(source, made)
        return
    if target is None and count is None and source in sets.SETS:
        _print_files(sets.find(source), settings.data_folder())
        return
    _print_content(source, target, 3 if count is None else count, column)


@app.command
def fetch(name: str, /) -> None:
    """Get a named data set from its public origin and check every file's sha256.

    Parameters
    ----------
    name
        The data set; `orrery data show` lists them.
    """
    from orrery import settings
    from orrery.data import generated, sets
    from orrery.errors import UsageError

    if name.partition("/")[0] in generated.names():
        raise UsageError(f"{name} is made on this machine: there is nothing to fetch", f"`orrery data show {name}`")
    folder = settings.data_folder()
    print(f"{name}: from {sets.find(name).origin}, licence: {sets.find(name).licence}")
    fetched = sets.fetch(name, folder)
    for path in fetched:
        print(f"wrote {path}")
    if not fetched:
        print(f"every file is already in {folder / name}")


def _print_files(data_set: "DataSet", folder: Path) -> None:
    print(f"{data_set.name}: {data_set.what}\nlicence: {data_set.licence}\norigin: {data_set.origin}")
    print(f"conversion: {data_set.conversion}\nfolder: {folder / data_set.name}")
    missing = {file.name for file in data_set.missing(folder)}
    for file in data_set.files:
        state = "missing" if file.name in missing else "present"
        print(f"  {state}  {file.bytes:>12,} bytes  sha256 {file.sha256}  {file.name}")
    parts = [
        f"{data_set.name}/{part}"
        for part in dict.fromkeys([*data_set.pairs, *data_set.corpora, *data_set.tables])
        if part
    ]
    if parts:
        print(f"parts: {', '.join(parts)} (`orrery data show PART` prints examples)")


def _print_made(name: str, made: "Made") -> None:
    print(f"{name}: {made.set.what}\nmade on this machine from: {made.set.made_from}\nhow: {made.set.how}")
    print(f"columns: {', '.join(made.set.columns) or 'none: sentences with a tag for each word'}")
    print(f"parts: {', '.join(f'{name}/{part}' for part in made.set.parts)} (`orrery data show PART` prints examples)")


def _print_content(source: str, target: str | None, examples: int, column: str) -> None:
    from orrery.cli.console import printable
    from orrery.cli.progress import watched
    from orrery.data.overview import one_line, overview

    seen = overview(source, target, examples, column, watched)
    if seen.columns:
        print(printable(f"column {seen.column!r} of {len(seen.columns)}: {', '.join(seen.columns)}"))
    print(", ".join(f"{count:,} {what}" for what, count in seen.counts.items() if count))
    for example in seen.examples:
        print(printable(one_line(example)))


def _print_table(folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from orrery.data import generated, sets

    table = Table("set", "here", "MB", "licence", "origin", title=f"data sets in {folder}")
    for data_set in sets.SETS.values():
        missing = len(data_set.missing(folder))
        here = "yes" if not missing else "no" if missing == len(data_set.files) else f"{missing} missing"
        size = sum(file.bytes for file in data_set.files) / 1e6
        table.add_row(data_set.name, here, f"{size:.1f}", data_set.licence, data_set.origin)
    for name in generated.names():
        made = generated.GENERATED.find(name.replace("-", "_"))
        table.add_row(name, "made", "", made.made_from, "made on this machine")
    Console().print(table)
