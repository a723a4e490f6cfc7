"""`orrery tokenizer`: train a tokenizer on text, look at what one does with a text."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from orrery.text.kinds import Kind

if TYPE_CHECKING:
    from orrery.text import Tokenizer

PATIENCE = 2.0
"""Seconds before a bar appears."""

app = App(name="tokenizer", help="Train a tokenizer, or look at one.")


@app.command
def train(
    source: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    kind: Kind = "byte_bpe",
    vocabulary: int | None = None,
    lowercase: Annotated[bool, Parameter(negative="")] = False,
    column: str = "text",
) -> None:
    """Train a tokenizer on a corpus and write tokenizer.json.

    Parameters
    ----------
    source
        python-docs, a named data set, a text or .jsonl file, or a folder of them.
    output
        Folder to write to.
    kind
        byte_bpe: frequent pairs of bytes merged, any text comes back exactly; char_bpe: the same on characters;
        wordpiece: pairs merged by likelihood, spaces dropped; unigram: the likeliest pieces; word: one id a word;
        character: one id a character.
    vocabulary
        Number of ids, the end token included (word and character: all of them where not given; else 4096).
    lowercase
        Turn every text into lower case first (not for byte_bpe, which gives back what it reads).
    column
        Column of .jsonl files that holds the text.
    """
    from orrery.data.corpora import read_corpus
    from orrery.text.train import train_tokenizer

    texts = (document.text for document in read_corpus(source, column=column))
    tokenizer = train_tokenizer(kind, _counted(texts), vocabulary, lowercase=lowercase)
    tokenizer.save(output)
    print(f"{output / 'tokenizer.json'}: {kind} tokenizer, {tokenizer.size:,} ids, {tokenizer.fingerprint[:12]}")


@app.command
def show(model: Path, text: str, /) -> None:
    """Print the pieces of a text, their ids, and for BPE the merges that made each word.

    Parameters
    ----------
    model
        A tokenizer.json, or a folder that holds one.
    text
        The text to cut.
    """
    from orrery.text import load_tokenizer

    tokenizer = load_tokenizer(model)
    ids = tokenizer.encode(text)
    print(f"{len(text):,} characters, {len(text.encode()):,} bytes, {len(ids):,} tokens")
    for id in ids:
        print(f"{id:>8}  {tokenizer.token(id)!r}")
    if tokenizer.definition["model"]["type"] == "BPE":
        _print_merges(tokenizer, text)


def _print_merges(tokenizer: "Tokenizer", text: str) -> None:
    from orrery.text.merges import merge_steps

    for word in dict.fromkeys(tokenizer.words(text)):
        print(f"\n{word}")
        for step, symbols in enumerate(merge_steps(tokenizer.definition, word)):
            print(f"{step:>8}  {' '.join(symbols)}")


def _counted(texts: Iterable[str]) -> Iterator[str]:
    """Pass the texts on behind a bar that appears, on a terminal, once reading has taken two seconds."""
    from time import monotonic

    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.completed:,} characters read"), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("read", total=None)
    start = monotonic()
    try:
        for text in texts:
            progress.advance(task, len(text))
            if monotonic() - start > PATIENCE and progress.console.is_terminal:
                progress.start()
            yield text
    finally:
        progress.stop()
