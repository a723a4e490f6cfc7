"""Concordance: every place of a word with the words around it, so that a vector can be checked against its text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orrery.errors import UsageError


class Occurrence(NamedTuple):
    """One occurrence: the words before, the word, the words after, and the number of the sentence from 0."""

    before: tuple[str, ...]
    word: str
    after: tuple[str, ...]
    sentence: int


def concordance(sentences: Iterable[Sequence[str]], word: str, window: int = 5) -> Iterator[Occurrence]:
    """Yield each place of ``word`` with up to ``window`` words of its sentence on each side.

    Raises `UsageError` for a window below 1.
    """
    if window < 1:
        raise UsageError(f"window is {window}", "window is at least 1")
    for number, sentence in enumerate(sentences):
        for place, token in enumerate(sentence):
            if token == word:
                before, after = sentence[max(0, place - window) : place], sentence[place + 1 : place + 1 + window]
                yield Occurrence(tuple(before), token, tuple(after), number)
