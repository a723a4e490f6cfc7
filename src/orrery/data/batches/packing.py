"""Fit documents of many lengths into rows of one length, with little room left over."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """Tokens ``start`` to ``stop`` of one document; the whole of it wherever it fits a row."""

    document: int
    start: int
    stop: int


def pieces(lengths: Sequence[int], row: int) -> list[Piece]:
    """Cut documents longer than a row into pieces of a row's length; leave the others whole."""
    return [
        Piece(document, start, min(start + row, length))
        for document, length in enumerate(lengths)
        for start in range(0, length, row)
    ]


def pack(pieces: Sequence[Piece], row: int) -> list[list[Piece]]:
    """Best fit, longest first: each piece goes where it leaves the least room, else opens a row.

    Never more than 11/9 of the fewest rows possible plus one (Johnson 1974, bound of best-fit decreasing).
    """
    rows: list[list[Piece]] = []
    rows_with_room: dict[int, list[int]] = defaultdict(list)
    rooms: list[int] = []  # the sizes of room that some row has, ascending
    for piece in sorted(pieces, key=lambda piece: (piece.start - piece.stop, piece.document, piece.start)):
        size = piece.stop - piece.start
        place = bisect_left(rooms, size)
        room = rooms[place] if place < len(rooms) else row
        if place < len(rooms):
            number = rows_with_room[room].pop()
            if not rows_with_room[room]:
                rooms.pop(place)
        else:
            number = len(rows)
            rows.append([])
        rows[number].append(piece)
        left = room - size
        if left and not rows_with_room[left]:
            insort(rooms, left)
        rows_with_room[left].append(number)
    return rows
