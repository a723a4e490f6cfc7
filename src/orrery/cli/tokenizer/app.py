"""`orrery tokenizer`: train a tokenizer on text; show and compare what tokenizers do with a text."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from orrery.cli.numbers import COUNT, COUNT_OR_NONE
from orrery.cli.tokenizer.chat import chat
from orrery.cli.tokenizer.compare import compare
from orrery.cli.tokenizer.show import show
from orrery.errors import DataError
from orrery.text.kinds import Frame

Kind = Literal["byte_bpe", "character", "word", "char_bpe", "wordpiece", "unigram", "bigram"]
"""Written out, so that help and completion name them; a program calls `train_tokenizer` with its own kinds."""

app = App(name="tokenizer", help="Train a tokenizer, see step by step what it does, compare several.")
app.command(show)
app.command(compare)
app.command(chat)


@app.command
def train(
    source: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    kind: Kind = "byte_bpe",
    vocabulary: Annotated[int | None, COUNT] = None,
    lowercase: Annotated[bool, Parameter(negative="")] = False,
    frame: Frame | None = None,
    column: str = "text",
    invalid: Literal["error", "replace"] = "error",
    skip_bad: Annotated[int, COUNT_OR_NONE] = 0,
    overwrite: bool = False,
) -> None:
    """Train a tokenizer on a corpus and write tokenizer.json.

    Parameters
    ----------
    source
        python-docs, a named data set, a text or .jsonl file, or a folder of them.
    output
        Folder to write to: a new or an empty one.
    kind
        byte_bpe: frequent pairs of bytes merged, any text comes back exactly; char_bpe: the same on characters;
        wordpiece: pairs merged by likelihood, spaces dropped; unigram: the likeliest pieces; word: one id a word;
        character: one id a character; bigram: frequent words whole, all others in pairs of characters (C2).
    vocabulary
        Number of ids, the end token included (by default all for word and character, 8192 for bigram, else 4096).
    lowercase
        Turn every text into lower case first (not for byte_bpe, which gives back what it reads).
    frame
        Family whose control tokens stand around texts, and count in the vocabulary: bert ([CLS] A [SEP] B [SEP], and
        [MASK]), roberta (<s> A </s></s> B </s>, and <mask>) or t5 (A </s> B </s>, and 100 sentinels).
    column
        Column that holds the text, in JSON lines, CSV and Parquet.
    invalid
        What to do with bytes that are not UTF-8.
    skip_bad
        Number of bad records a file that are left out.
    overwrite
        Replace the tokenizer in the folder, which holds nothing else.
    """
    from orrery.checkpoints.outputs import OutputFolder
    from orrery.cli.progress import watched
    from orrery.data.shards.large_text import ReadingOptions, read_texts
    from orrery.text.special import train_framed
    from orrery.text.tokenizer import FILES

    target = OutputFolder(output, FILES, inputs=[source], overwrite=overwrite)
    texts = read_texts(source, ReadingOptions(column, invalid, skip_bad))
    tokenizer = train_framed(kind, watched(texts, "blocks", len), vocabulary, frame, lowercase=lowercase)
    if vocabulary is not None and tokenizer.size < vocabulary:
        message = f"{source} gives a {kind} tokenizer {tokenizer.size:,} ids, and --vocabulary asks for {vocabulary:,}"
        raise DataError(message, f"give --vocabulary {tokenizer.size}, leave it away, or give more text")
    with target.aside() as fresh:
        tokenizer.save(fresh)
    print(f"{output / 'tokenizer.json'}: {kind} tokenizer, {tokenizer.size:,} ids, {tokenizer.fingerprint[:12]}")
