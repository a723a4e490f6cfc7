"""The likeliest segmentation, its score summed in float32 from the left as SentencePiece sums it.

Papers: Viterbi 1967; Kudo 2018, section 3.2.

A sum in float64, the engine's, makes two ways with the same pieces in another order exactly equal, and the first found
wins. In float32 the sums round, what came before decides which way wins, and no change of the scores can say that.
"""

from array import array
from collections.abc import Iterator

from orrery.text.sentencepiece.file import NORMAL, USER, SentencePieceModel
from orrery.text.sentencepiece.pieces import Cutter, PlacedPiece, Spelled, Spelling, byte_ids

PENALTY = 10.0
"""What an unknown character costs below the least score of a piece."""

LARGEST = 100_000.0
"""Beyond it SentencePiece takes a score off all that follow, so that float32 still tells them apart."""

_Way = tuple[float, int, int]
"""Score, start and id of the last piece of the best way to a place."""

_Begun = dict[str, tuple[int, float] | None]
"""Id and score of each piece, and None for each other beginning of one: a search ends where no piece can follow."""


class Unigram(Cutter):
    """Cut a normalised text into the likeliest pieces."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Take the ordinary and the user-defined pieces; the others are never found in a text."""
        self._unknown, self._bytes = model.unknown, byte_ids(model)
        self._begun: _Begun = {}
        for id, score, text in scored(model):
            for end in range(1, len(text)):
                self._begun.setdefault(text[:end], None)
            self._begun[text] = (id, score)
        self._longest = max(map(len, self._begun), default=1)
        self._least = penalty(model)

    def begin(self) -> Spelling:
        """Return the cutting of a new text, in memory for the longest stretch over which ways do not meet."""
        ways = _Ways(self._begun, self._longest, self._unknown, self._least)
        return Spelling(self._unknown, self._bytes, ways)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a whole text."""
        return self.begin().push(text, final=True)

    def cut(self, text: str) -> Spelled:
        """Return the ids of a whole text, and where they stand."""
        return self.begin().spell(text, final=True)


def scored(model: SentencePieceModel) -> Iterator[tuple[int, float, str]]:
    """Yield id, score and text of the pieces that are found in texts; one of the user wins over all others."""
    for id, piece in enumerate(model.pieces):
        if piece.kind == NORMAL:
            yield id, piece.score, piece.text
        if piece.kind == USER:
            yield id, rounded(0.1 * (len(piece.text.encode()) - 1)), piece.text


def penalty(model: SentencePieceModel) -> float:
    """Return the score of an unknown character."""
    return rounded(min((piece.score for piece in model.pieces if piece.kind == NORMAL), default=0.0) - PENALTY)


def rounded(number: float) -> float:
    """Round to float32."""
    return array("f", [number])[0]


class _Ways:
    """The best ways to the places of a text that are open, by place."""

    def __init__(self, begun: _Begun, longest: int, unknown: int, least: float) -> None:
        self._begun, self._longest, self._unknown, self._least = begun, longest, unknown, least
        self._ways: dict[int, _Way] = {}
        self._next = self._furthest = self.settled = 0
        self._score = 0.0
        self._cell = array("f", [0.0])

    def push(self, text: str, offset: int, final: bool) -> Iterator[PlacedPiece]:
        """Yield the pieces up to the last place that no piece reaches across."""
        last = offset + len(text)
        for start in range(self._next, last if final else last - self._longest + 1):
            if start == self._furthest:
                # All ways meet here, and what comes later changes nothing before.
                yield from self._settle(start)
            else:
                self._score = self._ways[start][0]
            if abs(self._score) > LARGEST:
                self._ways = {end: (rounded(way[0] - self._score), *way[1:]) for end, way in self._ways.items()}
                self._score = 0.0
            self._furthest = max(self._furthest, self._extend(text, start, offset))
            self._next = start + 1
        if final:
            yield from self._settle(last)

    def _extend(self, text: str, start: int, offset: int) -> int:
        """Enter every piece that starts here where it is the best way to its end; return the furthest end."""
        begun, ways, score, cell = self._begun, self._ways, self._score, self._cell
        alone = False
        furthest, first = start + 1, start - offset
        for end in range(start + 1, offset + len(text) + 1):
            part = text[first : end - offset]
            if part not in begun:
                break
            entry = begun[part]
            if entry:
                cell[0] = score + entry[1]
                if end not in ways or cell[0] > ways[end][0]:
                    ways[end] = (cell[0], start, entry[0])
                alone = alone or end == start + 1
                furthest = end
        if not alone:
            cell[0] = score + self._least
            if start + 1 not in ways or cell[0] > ways[start + 1][0]:
                ways[start + 1] = (cell[0], start, self._unknown)
        return furthest

    def _settle(self, last: int) -> list[PlacedPiece]:
        """Return the pieces of the best way to ``last``, and forget all ways."""
        pieces: list[PlacedPiece] = []
        place = last
        while place > self.settled:
            _, start, id = self._ways[place]
            pieces.append((id, start, place))
            place = start
        self._score = self._ways[last][0] if pieces else self._score
        self._ways, self.settled = {}, last
        return pieces[::-1]
