"""A long text beside a question, read in windows that overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.text.frames import Framed
    from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class QuestionWindow:
    """A question and a piece of its context as a model reads them.

    Attributes:
        framed: the ids with the special tokens, and their token types.
        offset: the place in the row of the piece's first token.
        tokens: which tokens of the context the piece has.
    """

    framed: "Framed"
    offset: int
    tokens: range


def windows_of(
    tokenizer: "Tokenizer", question: Sequence[int], context: Sequence[int], length: int, stride: int, longest: int
) -> list[QuestionWindow]:
    """Return the windows of a context: each has at most ``length`` tokens, and neighbours share ``stride`` of them.

    Args:
        tokenizer: puts the special tokens around.
        question: its ids, of which the first ``longest`` are read.
        context: its ids.
        length: tokens of a row at most.
        stride: tokens that neighbours share.
        longest: tokens of a question at most.

    Raises:
        UsageError: the windows have no room for more of the context than neighbours share.
    """
    question = list(question[:longest])
    marked = tokenizer.around(question, [-1]).ids
    offset, room = marked.index(-1), length - len(marked) + 1
    if room <= stride and len(context) > room:
        message = f"a row of {length:,} tokens has room for {max(0, room):,} of the context beside its question"
        raise UsageError(message, f"neighbouring windows share {stride:,}: raise the length or lower the stride")
    return [
        QuestionWindow(tokenizer.around(question, context[begin:end]), offset, range(begin, end))
        for begin, end in windows(len(context), room, min(stride, room - 1))
    ]


def windows(tokens: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield where windows of ``size`` tokens begin and end, each with so many tokens of the one before it.

    Raises:
        UsageError: the overlap fills a window.
    """
    if overlap >= size:
        raise UsageError(f"windows of {size:,} tokens cannot share {overlap:,}", "choose a smaller stride")
    start = 0
    while True:
        yield start, min(start + size, tokens)
        if start + size >= tokens:
            return
        start += size - overlap
