"""`orrery data`: which data sets there are, get one from its origin, make token shards."""

from pathlib import Path

from cyclopts import App

app = App(name="data", help="Data sets: show, fetch, prepare, verify.")
app.command("orrery.cli.data_prepare:prepare")
app.command("orrery.cli.data_prepare:verify")


@app.command
def show(name: str | None = None, /) -> None:
    """Show every named data set, or one of them with its files.

    Parameters
    ----------
    name
        A data set; without it, all of them in a table.
    """
    from orrery import settings
    from orrery.data import sets

    folder = settings.data_folder()
    if name is None:
        _print_table(folder)
        return
    found = sets.find(name)
    print(f"{found.name}: {found.what}\nlicence: {found.licence}\norigin: {found.origin}")
    print(f"conversion: {found.conversion}\nfolder: {folder / name}")
    missing = {file.name for file in found.missing(folder)}
    for file in found.files:
        state = "missing" if file.name in missing else "present"
        print(f"  {state}  {file.bytes:>12,} bytes  sha256 {file.sha256}  {file.name}")


@app.command
def fetch(name: str, /) -> None:
    """Get a named data set from its public origin and check every file's sha256.

    Parameters
    ----------
    name
        The data set; `orrery data show` lists them.
    """
    from orrery import settings
    from orrery.data import sets

    folder = settings.data_folder()
    print(f"{name}: from {sets.find(name).origin}, licence: {sets.find(name).licence}")
    written = sets.fetch(name, folder)
    for path in written:
        print(f"wrote {path}")
    if not written:
        print(f"every file is already in {folder / name}")


def _print_table(folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from orrery.data import sets

    table = Table("set", "here", "MB", "licence", "origin", title=f"data sets in {folder}")
    for found in sets.SETS.values():
        missing = len(found.missing(folder))
        here = "yes" if not missing else "no" if missing == len(found.files) else f"{missing} missing"
        size = sum(file.bytes for file in found.files) / 1e6
        table.add_row(found.name, here, f"{size:.1f}", found.licence, found.origin)
    Console().print(table)
