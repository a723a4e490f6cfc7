"""What cuts a normalised text into ids, while it comes part by part."""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orrery.text.sentencepiece.file import BYTE, SentencePieceModel

PlacedPiece = tuple[int, int, int]
"""Id, start and end of a piece in the normalised text."""

Places = Sequence[int] | NDArray[np.int32]
Spelled = tuple[list[int], Places, Places]
"""Ids, and where the part of the normalised text that each stands for starts and ends."""


class Cutting(ABC):
    """The cutting of one text."""

    @abstractmethod
    def push(self, text: str, final: bool) -> list[int]:
        """Take more of the text, with ``final`` the last of it; return the ids that nothing later can change."""


class Cutter(ABC):
    """The rules of a model."""

    @abstractmethod
    def begin(self) -> Cutting:
        """Return the cutting of a new text."""

    @abstractmethod
    def ids(self, text: str) -> list[int]:
        """Return the ids of a whole text."""

    @abstractmethod
    def cut(self, text: str) -> Spelled:
        """Return the ids of a whole text, and where they stand."""


@runtime_checkable
class PieceSearch(Protocol):
    """The search for the pieces of one text; an unknown piece is one character."""

    settled: int
    """The place from which on the text is still needed."""

    def push(self, text: str, offset: int, final: bool) -> Iterator[PlacedPiece]:
        """Yield further pieces of a text that ``text`` continues from its place ``offset`` on."""
        ...


class Spelling(Cutting):
    """Pieces with what is unknown in bytes, or as one id for a run of it."""

    def __init__(self, unknown: int, of_bytes: Sequence[int], search: PieceSearch) -> None:
        """Take the id of what is unknown, the ids of the bytes or none, and the search for the pieces of one text."""
        self._search = search
        self._bytes = of_bytes
        self._unknown = unknown
        self._held, self._offset, self._running = "", 0, False

    def push(self, text: str, final: bool) -> list[int]:
        """Take more of the text; return the ids that nothing later can change."""
        return self.spell(text, final)[0]

    def spell(self, text: str, final: bool) -> Spelled:
        """Do as `push`; return also where the ids stand."""
        held, offset = self._held + text, self._offset
        ids: list[int] = []
        starts, ends = array("Q"), array("Q")
        for id, start, end in self._search.push(held, offset, final):
            if id == self._unknown and not self._bytes:
                if self._running:
                    if ends:
                        ends[-1] = end
                    continue
            elif id == self._unknown:
                spelled = [self._bytes[byte] for byte in held[start - offset : end - offset].encode()]
                ids += spelled
                starts.extend([start] * len(spelled))
                ends.extend([end] * len(spelled))
                continue
            self._running = id == self._unknown
            ids.append(id)
            starts.append(start)
            ends.append(end)
        self._offset = self._search.settled
        self._held = held[self._offset - offset :]
        return ids, starts, ends


def byte_ids(model: SentencePieceModel) -> list[int]:
    """Return the ids of the 256 bytes, or none where the model has no pieces for them."""
    return [id for _, id in sorted(model.ids(BYTE).items())]
