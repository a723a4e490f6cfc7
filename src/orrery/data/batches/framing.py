"""Texts as a model reads them: cut to a length, with the special tokens of the family around them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orrery.text.frames import Framed
    from orrery.text.tokenizer import Tokenizer


def fitted(
    tokenizer: "Tokenizer", first: Sequence[int], second: Sequence[int] | None, length: int
) -> tuple["Framed", bool]:
    """Return the ids of a text, or of two, between the family's special tokens, and whether they had to be cut.

    At most ``length`` tokens are left; of two texts the longer one loses its last tokens first (or its first ones,
    where the tokenizer's ``truncation_side`` is left), as transformers' ``longest_first`` does.
    """
    around = len(tokenizer.around([], None if second is None else []).ids)
    room = max(2 if second is not None else 1, length - around)
    sizes = (len(first), 0 if second is None else len(second))
    kept = longest_first(*sizes, room)
    left = tokenizer.kept(first, kept[0])
    return tokenizer.around(left, None if second is None else tokenizer.kept(second, kept[1])), kept != sizes


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts stay: the longer is cut down to the shorter, then both to a half each."""
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (shorter, room - shorter) if first <= second else (room - shorter, shorter)


def cut_note(cut: int, of: int, what: str, length: int) -> list[str]:
    """Say how many texts were cut; nothing where none was."""
    return [f"{cut:,} of {of:,} {what} cut to batches.length, {length:,} tokens"] if cut else []
