"""What stands on both sides of a split: texts that are trained on and held back, which make scores say too much."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orrery.data.records import Document
from orrery.data.stratified import Parted, folded

LONG_LINE = 40
"""Characters from which on a line is compared: shorter ones come again in any text."""
_LONG = re.compile(rf"\S[^\n]{{{LONG_LINE - 1},}}")
MANY_LINES = 0.01
"""The share of such lines held back from which on it is said that they stand in the training text too."""


@dataclass(frozen=True)
class SharedRows:
    """Rows held back that share their text with a row that is trained on.

    Attributes:
        held_back: how many rows are held back.
        whole: those of which all that is read is also trained on, but for white space and capital letters.
        part: those of the others that share a text with a row that is trained on.
    """

    held_back: int
    whole: Sequence[Parted]
    part: Sequence[Parted]

    def notes(self) -> list[str]:
        """Return what is said of them before training; nothing where there are none."""
        leaks = ((self.whole, "stand in training too, word for word"), (self.part, "share a text with a training row"))
        return [
            f"leak: {len(rows):,} of {self.held_back:,} rows held back {how}: scores say too much; the first is "
            f"{rows[0].where}"
            for rows, how in leaks
            if rows
        ]

    def sentence(self) -> str:
        """Return what a report says of the rows held back."""
        if not self.whole and not self.part:
            return "Nothing of these examples was trained on."
        return (
            f"Of these {self.held_back:,} examples {len(self.whole):,} were trained on word for word, and "
            f"{len(self.part):,} share a text with one that was: the scores say too much."
        )


def shared(train: Iterable[Parted], held_back: Sequence[Parted]) -> SharedRows:
    """Return the rows held back that share their text with one that is trained on."""
    wholes: set[tuple[str, ...]] = set()
    parts: set[str] = set()
    for row in train:
        wholes.add(_whole(row))
        parts.update(_parts(row))
    repeated = [row for row in held_back if _whole(row) in wholes]
    again = set(map(id, repeated))
    part = [row for row in held_back if id(row) not in again and any(each in parts for each in _parts(row))]
    return SharedRows(len(held_back), repeated, part)


def notes_on_documents(train: Sequence[Document], held_back: Sequence[Document]) -> list[str]:
    """Say which documents held back are trained on too, and how many of their long lines, where these are many.

    Texts may fill the memory, so nothing of them is copied but the long lines that are held back.
    """
    digests = {_digest(document) for document in held_back if document.text}
    again = digests and digests.intersection(map(_digest, train))
    both = [document for document in held_back if document.text and again and _digest(document) in again]
    name = both[0].name if both else ""
    return notes_on_shares((len(both), len(held_back), name), shared_lines(train, held_back))


def notes_on_shares(documents: tuple[int, int, str], lines: tuple[int, int]) -> list[str]:
    """Say how many documents, and how many different long lines, stand on both sides: of the lines where they are many.

    Args:
        documents: how many stand on both sides, how many are held back, and the name of the first.
        lines: how many stand on both sides, and how many are held back.
    """
    both, of_documents, first = documents
    met, of_lines = lines
    sentences = []
    if both:
        of = f"leak: {both:,} of {of_documents:,} documents held back stand in training too, word for word"
        sentences.append(f"{of}: scores say too much; the first is {first}")
    if met and met >= MANY_LINES * of_lines:
        than = f"of the {of_lines:,} different lines held back with {LONG_LINE} characters or more"
        sentences.append(f"leak: {met:,} {than} stand in the training text too")
    return sentences


def shared_lines(train: Iterable[Document], held_back: Iterable[Document]) -> tuple[int, int]:
    """Return how many of the different long lines held back stand in the training text too, and how many there are."""
    wanted = {line for document in held_back for line in long_lines(document.text)}
    met = {line for document in train for line in long_lines(document.text) if line in wanted} if wanted else set()
    return len(met), len(wanted)


def _whole(row: Parted) -> tuple[str, ...]:
    return tuple(folded(text) for text in row.whole)


def _parts(row: Parted) -> list[str]:
    return [folded(text) for text in row.parts]


def _digest(document: Document) -> bytes:
    return hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).digest()


def long_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that are long enough to be compared, without the white space around them."""
    return (match[0].rstrip() for match in _LONG.finditer(text))
