"""The likeliest segmentation, its score summed in float32 from the left as SentencePiece sums it.

Papers: Viterbi 1967; Kudo 2018, section 3.2.

A sum in float64, the engine's, makes two ways with the same pieces in another order exactly equal, and the first found
wins. In float32 the sums round, what came before decides which way wins, and no change of the scores can say that.
"""

from array import array
from collections.abc import Iterator

from orrery.text.sentencepiece.file import NORMAL, USER, Model

PENALTY = 10.0
"""What an unknown character costs below the least score of a piece."""

LARGEST = 100_000.0
"""Beyond it SentencePiece takes a score off all that follow, so that float32 still tells them apart."""

Segment = tuple[int, int, int]
"""Id, start and end of a piece in the normalised text."""

_Way = tuple[float, int, int]
"""Score, start and id of the last piece of the best way to a place."""


class Unigram:
    """Cut a normalised text into the likeliest pieces."""

    def __init__(self, model: Model) -> None:
        """Take the ordinary and the user-defined pieces; the others are never found in a text."""
        self._unknown = model.unknown
        # Every beginning of a piece is a key, so that a search ends where no piece can follow.
        self._begun: dict[str, tuple[int, float] | None] = {}
        least = min((piece.score for piece in model.pieces if piece.kind == NORMAL), default=0.0)
        self._least = _rounded(least - PENALTY)
        for id, piece in enumerate(model.pieces):
            if piece.kind in (NORMAL, USER):
                for end in range(1, len(piece.text)):
                    self._begun.setdefault(piece.text[:end], None)
                # So that it wins over all others.
                user = _rounded(0.1 * (len(piece.text.encode()) - 1))
                self._begun[piece.text] = (id, user if piece.kind == USER else piece.score)

    def __call__(self, text: str) -> Iterator[Segment]:
        """Yield the segments, in memory that grows only with the longest stretch over which ways do not meet."""
        ways: dict[int, _Way] = {}
        first = furthest = 0
        score = 0.0
        for start in range(len(text)):
            if start == furthest:
                # No piece reaches across: all ways meet here, and what comes later changes nothing before.
                yield from _back(ways, first, start)
                score = ways[start][0] if ways else 0.0
                ways, first = {}, start
            else:
                score = ways[start][0]
            if abs(score) > LARGEST:
                ways = {end: (_rounded(way[0] - score), *way[1:]) for end, way in ways.items()}
                score = 0.0
            furthest = max(furthest, self._extend(text, start, score, ways))
        yield from _back(ways, first, len(text))

    def _extend(self, text: str, start: int, score: float, ways: dict[int, _Way]) -> int:
        """Enter every piece that starts here where it is the best way to its end; return the furthest end."""
        begun, cell = self._begun, array("f", [0.0])
        alone = False
        furthest = start + 1
        for end in range(start + 1, len(text) + 1):
            part = text[start:end]
            if part not in begun:
                break
            found = begun[part]
            if found:
                cell[0] = score + found[1]
                if end not in ways or cell[0] > ways[end][0]:
                    ways[end] = (cell[0], start, found[0])
                alone = alone or end == start + 1
                furthest = end
        if not alone:
            cell[0] = score + self._least
            if start + 1 not in ways or cell[0] > ways[start + 1][0]:
                ways[start + 1] = (cell[0], start, self._unknown)
        return furthest


def _back(ways: dict[int, _Way], first: int, last: int) -> list[Segment]:
    """Return the pieces of the best way from ``first`` to ``last``."""
    found: list[Segment] = []
    while last > first:
        _, start, id = ways[last]
        found.append((id, start, last))
        last = start
    return found[::-1]


def _rounded(number: float) -> float:
    """Round to float32."""
    return array("f", [number])[0]
