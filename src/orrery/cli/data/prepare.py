"""`orrery data prepare` and `orrery data verify`: text to token shards, and whether they are still what was written."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, COUNT_OR_NONE
from orrery.cli.places import RUN_OR_PATH

if TYPE_CHECKING:
    from rich.console import Console

    from orrery.data.shards.index import Index
    from orrery.data.shards.prepare import PreparationProgress

PATIENCE = 2.0
"""Seconds before anything is shown."""

BETWEEN_LINES = 10.0


def prepare(
    source: str,
    /,
    *,
    tokenizer: Annotated[Path, RUN_OR_PATH],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    column: str = "text",
    every: Annotated[int, COUNT] = 20,
    invalid: Literal["error", "replace"] = "error",
    skip_bad: Annotated[int, COUNT_OR_NONE] = 0,
    shard_tokens: Annotated[int, COUNT] = 1 << 26,
    part: str | None = None,
) -> None:
    """Write a corpus as token shards, train-00000.tokens and so on, with their index.json.

    Memory does not grow with the corpus. A preparation that was stopped, by whatever, goes on where the same
    command is given again, and ends with the same bytes. Several machines share the work by --part 1/8 to 8/8 beside
    the same words, with an output that all see; once all parts are there, the command without --part joins them.

    Parameters
    ----------
    source
        python-docs, a named data set, a text or .jsonl file, or a folder of them.
    tokenizer
        A tokenizer.json, or a folder that holds one.
    output
        Folder to write to: a new or an empty one, or one with this preparation begun.
    column
        Column of .jsonl files that holds the text.
    every
        About one document in this many is held back, by a hash of its name; of a single text the last tenth.
    invalid
        What to do with bytes that are not UTF-8.
    skip_bad
        Number of bad .jsonl lines a file that are left out.
    shard_tokens
        Number of tokens a shard.
    part
        Which part of the source to write, 3/8 for the third of eight.
    """
    from orrery.data.cleaning.shared_text import notes_on_shards
    from orrery.data.shards.large_text import ReadingOptions
    from orrery.data.shards.parts import parse_part, part_folder
    from orrery.data.shards.prepare import prepare
    from orrery.errors import UsageError
    from orrery.text import load_tokenizer

    for name, number in (("every", every), ("shard-tokens", shard_tokens)):
        if number < 1:
            raise UsageError(f"--{name} is {number}", "give a number of at least 1")
    own = None if part is None else parse_part(part)
    place = part_folder(output, own) if own else output
    for folder in (output, place):
        _refuse(folder, inputs=[source, tokenizer])
    reading = ReadingOptions(column, invalid, skip_bad)
    loaded = load_tokenizer(tokenizer)
    try:
        with _shown() as report:
            index = prepare(source, loaded, output, reading, every, shard_tokens, report, own)
    except (KeyboardInterrupt, SystemExit):
        print(f"stopped; the same command goes on from what {place} holds", file=sys.stderr)
        raise
    for note in () if own else notes_on_shards(index.shared, ""):
        print(note, file=sys.stderr)
    _tell(place, index)
    if own:
        print(f"once all {own[1]} parts are there, the same command without --part joins them", file=sys.stderr)


def _refuse(place: Path, inputs: "list[str | Path]") -> None:
    """Raise `UsageError` for a folder that holds anything else than a preparation or its parts."""
    from orrery.checkpoints.lock import NAME as LOCK
    from orrery.checkpoints.outputs import OutputFolder
    from orrery.data.shards.index import NAME, Index

    if Index.read(place) is None:
        begun = [file.name for file in (*place.glob(f"{NAME}.tmp-*"), *place.glob("part-*-of-*"))]
        OutputFolder(place, (LOCK, *begun), inputs=inputs, overwrite=True)


def _tell(place: Path, index: "Index") -> None:
    """Print what was written of each split."""
    width = 16 if index.plan.vocabulary <= 1 << 16 else 32
    for name, split in index.splits.items():
        files = f"{len(split.shards):,} shard{'s' * (len(split.shards) != 1)}"
        print(f"{place}: {name}: {split.tokens:,} tokens of {split.documents:,} documents, {files}, uint{width}")


def verify(folder: Path, /) -> None:
    """Read every token of prepared shards and compare it with what was written, by sha256.

    Parameters
    ----------
    folder
        A folder that `orrery data prepare` wrote.
    """
    from orrery.data.shards.index import verify

    print(f"{folder}: {verify(folder):,} tokens, every shard as it was written")


@contextmanager
def _shown() -> Iterator[Callable[["PreparationProgress"], None]]:
    """Give a place to report progress to: a bar on a terminal, else a line now and then; nothing for short work."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console) as report:
            yield report
    else:
        yield _Lines().report


class _Lines:
    """A plain line every ten seconds."""

    def __init__(self) -> None:
        self.start = self.before = monotonic()
        self.shown_at = self.start - BETWEEN_LINES + PATIENCE
        self.tokens: int | None = None

    def report(self, progress: "PreparationProgress") -> None:
        """Print how far it is, if the last line is old."""
        now = monotonic()
        self.tokens = progress.tokens if self.tokens is None else self.tokens
        if now - self.shown_at < BETWEEN_LINES:
            return
        self.shown_at = now
        rate = (progress.tokens - self.tokens) / max(now - self.start, 1e-9)
        of_total = f" of {progress.total / 1e6:,.0f}" if progress.total else ""
        doing = f"{progress.doing}: " if progress.doing else ""
        line = f"{doing}{progress.done / 1e6:,.0f}{of_total} MB, {progress.tokens:,} tokens, {rate:,.0f} tokens/s"
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _bar(console: "Console") -> Iterator[Callable[["PreparationProgress"], None]]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    measures = TextColumn("{task.fields[rate]:,.0f} tokens/s")
    columns = BarColumn(), DownloadColumn(), measures, TimeElapsedColumn(), TimeRemainingColumn()
    bar = Bar(*columns, console=console, transient=True)
    task = bar.add_task("prepare", total=None, rate=0.0)
    start, first = monotonic(), -1

    def report(progress: "PreparationProgress") -> None:
        nonlocal first
        first = progress.tokens if first < 0 else first
        seconds = monotonic() - start
        rate = (progress.tokens - first) / max(seconds, 1e-9)
        bar.update(task, completed=progress.done, total=progress.total, rate=rate)
        if seconds > PATIENCE:
            bar.start()

    try:
        yield report
    finally:
        bar.stop()
