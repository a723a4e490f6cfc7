"""What stands on both sides of a split: texts that are trained on and held back, which make scores say too much."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orrery.data.records import Document
from orrery.data.stratified import Parted, folded

LONG_LINE = 40
"""Characters from which on a line is compared: shorter ones come again in any text."""
MANY_LINES = 0.01
"""The share of such lines held back from which on it is said that they stand in the training text too."""


@dataclass(frozen=True)
class Shared:
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
        found = ((self.whole, "stand in training too, word for word"), (self.part, "share a text with a training row"))
        return [
            f"leak: {len(rows):,} of {self.held_back:,} rows held back {how}: scores say too much; the first is "
            f"{rows[0].where}"
            for rows, how in found
            if rows
        ]

    def sentence(self) -> str:
        """Return what a report says of the rows held back."""
        if not self.whole and not self.part:
            return "No text of these examples was trained on."
        return (
            f"Of these {self.held_back:,} examples {len(self.whole):,} were trained on word for word, and "
            f"{len(self.part):,} share a text with one that was: the scores say too much."
        )


def shared(train: Iterable[Parted], held_back: Sequence[Parted]) -> Shared:
    """Return the rows held back that share their text with one that is trained on."""
    wholes: set[tuple[str, ...]] = set()
    parts: set[str] = set()
    for row in train:
        wholes.add(_whole(row))
        parts.update(_parts(row))
    whole = [row for row in held_back if _whole(row) in wholes]
    again = set(map(id, whole))
    part = [row for row in held_back if id(row) not in again and any(each in parts for each in _parts(row))]
    return Shared(len(held_back), whole, part)


def shared_lines(train: Iterable[Document], held_back: Iterable[Document]) -> tuple[int, int]:
    """Return how many of the different long lines held back stand in the training text too, and how many there are."""
    wanted = {line for document in held_back for line in _long_lines(document)}
    met: set[str] = set()
    for document in train:
        met.update(line for line in _long_lines(document) if line in wanted)
    return len(met), len(wanted)


def lines_note(train: Iterable[Document], held_back: Iterable[Document]) -> list[str]:
    """Say how many long lines of the text held back are trained on too, where they are many."""
    met, lines = shared_lines(train, held_back)
    if met < MANY_LINES * lines or not met:
        return []
    than = f"of the {lines:,} different lines held back with {LONG_LINE} characters or more"
    return [f"leak: {met:,} {than} stand in the training text too"]


def _whole(row: Parted) -> tuple[str, ...]:
    return tuple(folded(text) for text in row.whole)


def _parts(row: Parted) -> list[str]:
    return [folded(text) for text in row.parts]


def _long_lines(document: Document) -> Iterable[str]:
    lines = (line.strip() for line in document.text.splitlines())
    return (line for line in lines if len(line) >= LONG_LINE)
