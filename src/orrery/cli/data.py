"""`orrery data`: which data sets there are, get one from its origin, make token shards."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(name="data", help="Data sets and texts: show, fetch, clean, prepare.")
app.command("orrery.cli.data_clean:clean", name="clean", help="Leave out duplicates and debris.")


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


@app.command
def prepare(
    source: str,
    /,
    *,
    tokenizer: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    column: str = "text",
    every: int = 20,
    invalid: Literal["error", "replace"] = "error",
    skip_bad: int = 0,
) -> None:
    """Write the token shards train.tokens and validation.tokens of a corpus.

    Parameters
    ----------
    source
        python-docs, a named data set, a text or .jsonl file, or a folder of them.
    tokenizer
        A tokenizer.json, or a folder that holds one.
    output
        Folder to write to.
    column
        Column of .jsonl files that holds the text.
    every
        About one document in this many is held back, by a hash of its name; of a single text the last tenth.
    invalid
        What to do with bytes that are not UTF-8.
    skip_bad
        Number of bad .jsonl lines a file that are left out.
    """
    from orrery.data.corpora import read_corpus
    from orrery.data.prepare import split, write_tokens
    from orrery.text import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    train, validation = split(read_corpus(source, column=column, invalid=invalid, skip_bad=skip_bad), every)
    output.mkdir(parents=True, exist_ok=True)
    for name, documents in (("train", train), ("validation", validation)):
        path = output / f"{name}.tokens"
        info = write_tokens(path, documents, loaded)
        print(f"{path}: {info.count:,} tokens of {len(documents):,} documents, {info.dtype.name}")


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
