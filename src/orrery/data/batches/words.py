"""Words and their tokens: which token of a sentence is the first of each word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orrery.text.tokenizer import Tokenizer

NONE = -1
"""In the place of a token: the word has none of its own."""


@dataclass(frozen=True)
class Tokenised:
    """The tokens of a sentence, and for each word the place of its first token, or ``NONE``."""

    ids: list[int]
    firsts: list[int]


def tokenise_words(tokenizer: "Tokenizer", words: Sequence[str], text: str | None = None) -> Tokenised:
    """Return the tokens of words that stand in a text in their order, by default with a blank between them.

    A token belongs to the word in which its last character stands, so that the blank before a word, which byte-level
    tokens begin with, belongs to that word. A word that the tokenizer drops (a lone zero-width character) has none.
    """
    text = " ".join(words) if text is None else text
    starts, place = [], 0
    for word in words:
        starts.append(text.index(word, place))
        place = starts[-1] + len(word)
    spans = tokenizer.spans(text)
    firsts, number = [NONE] * len(words), 0
    for place, (_, start, end) in enumerate(spans):
        if end <= start or not words:
            continue
        while number + 1 < len(words) and end > starts[number + 1]:
            number += 1
        # What is between two words, as the blank behind one, is part of none.
        if starts[number] < end <= starts[number] + len(words[number]) and firsts[number] == NONE:
            firsts[number] = place
    return Tokenised([id for id, _, _ in spans], firsts)


def pieces_of(firsts: Sequence[int], tokens: int, room: int) -> list[tuple[range, range]]:
    """Return the pieces, (words, tokens), into which a sentence is cut so that none has more than ``room`` tokens.

    They are cut before the first token of a word; a single word longer than a piece is cut inside.
    """
    starts = [(place, word) for word, place in enumerate(firsts) if place != NONE and place > 0]
    pieces, begin, first = [], 0, 0
    while tokens - begin > room:
        inside = [(place, word) for place, word in starts if begin < place <= begin + room]
        # A word that fills the piece alone goes on in the next one, which then has no first token of it.
        place, word = inside[-1] if inside else (begin + room, _after(firsts, begin + room))
        pieces.append((range(first, word), range(begin, place)))
        begin, first = place, word
    return [*pieces, (range(first, len(firsts)), range(begin, tokens))]


def _after(firsts: Sequence[int], place: int) -> int:
    """Return the first word that begins at a place or behind it."""
    return next((word for word, first in enumerate(firsts) if first >= place), len(firsts))
