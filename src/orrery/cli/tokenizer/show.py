"""What one tokenizer does to one text: bytes to pieces to ids, then how each word came to be cut."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from orrery.cli.console import printable
from orrery.cli.numbers import COUNT
from orrery.cli.places import RUN_OR_PATH
from orrery.cli.tables import print_table

if TYPE_CHECKING:
    from orrery.text import Tokenizer

BLANKS = str.maketrans({" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
SHOWN = 3
"""So many of the pieces that did not fit are named."""


def show(model: Annotated[Path, RUN_OR_PATH], text: str, /, *, best: Annotated[int, COUNT] = 5) -> None:
    """Print the bytes, pieces and ids of a text, and step by step how each word was cut.

    Parameters
    ----------
    model
        A tokenizer.json, a published vocabulary, or a folder that holds one.
    text
        The text to cut.
    best
        For Unigram: how many of the most probable cuts of each word.
    """
    from orrery.errors import UsageError
    from orrery.text import load_tokenizer
    from orrery.text.stages import Stages

    tokenizer = load_tokenizer(model)
    _print_tokens(tokenizer, text)
    try:
        stages = Stages(tokenizer)
    except UsageError as error:
        print(f"\nno steps: {error.message}")
        return
    normal = stages.normalise(text)
    if normal != text:
        print(f"\nnormalised: {visible(normal)}")
    print_steps = _steps_of(tokenizer, best)
    for word in dict.fromkeys(stages.words(text)):
        print_steps(word)


def visible(text: str) -> str:
    """Return text with its blanks and control characters drawn: ␣ is a space."""
    return printable(text.translate(BLANKS))


def _print_tokens(tokenizer: "Tokenizer", text: str) -> None:
    from orrery.text.pieces import context_free
    from orrery.text.stages import surfaces

    if context_free(tokenizer.definition):
        spelled = [(id, tokenizer.decode_bytes([id], special=True)) for id in tokenizer.encode(text)]
    else:
        spelled = [(id, part.encode()) for id, part in surfaces(tokenizer, text)]
    print(f"{len(text):,} characters, {len(text.encode()):,} bytes, {len(spelled):,} tokens")
    rows = [(content.hex(" "), visible(tokenizer.token(id)), str(id)) for id, content in spelled]
    if rows:
        print_table(("bytes", "piece", "id"), rows)


def _steps_of(tokenizer: "Tokenizer", best: int) -> Callable[[str], None]:
    """Return what prints the steps of one word; a tokenizer of whole words or characters has none."""
    from orrery.text.algorithms.sampling import lattice_of

    kind = tokenizer.definition["model"]["type"]
    if kind == "Unigram":
        lattice = lattice_of(tokenizer)
        return lambda word: _print_rows(
            word, [(f"{score:.4f}", " ".join(map(visible, cut))) for score, cut in lattice.best(word, best)]
        )
    rows_of = {"BPE": _merges, "WordPiece": _matches}.get(kind)
    return (lambda word: _print_rows(word, rows_of(tokenizer, word))) if rows_of else (lambda word: None)


def _merges(tokenizer: "Tokenizer", word: str) -> list[tuple[str, str]]:
    from orrery.text.algorithms.merges import merge_steps

    steps = merge_steps(tokenizer.definition, word)
    return [(str(step), " ".join(map(visible, symbols))) for step, symbols in enumerate(steps)]


def _matches(tokenizer: "Tokenizer", word: str) -> list[tuple[str, str]]:
    from orrery.text.algorithms.steps import longest_matches

    rows = []
    for step, (piece, refused) in enumerate(longest_matches(tokenizer.definition, word), 1):
        named = ", ".join(map(visible, refused[:SHOWN])) + (", ..." if len(refused) > SHOWN else "")
        rows.append((str(step), visible(piece) + (f"   no piece: {named}" if named else "")))
    return rows


def _print_rows(word: str, rows: list[tuple[str, str]]) -> None:
    print(f"\n{visible(word)}")
    for label, text in rows:
        print(f"{label:>8}  {text}")
