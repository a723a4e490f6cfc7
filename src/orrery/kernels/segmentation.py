"""The compiled search for the likeliest pieces of a text, its sums rounded to float32 as SentencePiece rounds them.

Its specification is `orrery.text.sentencepiece.unigram`, which also says why. Without numba this is slow: use that.

Arrays of one text, by place from 0 to its length: ``totals`` the score of the best way there, ``starts`` where its
last piece begins (-1 where nothing ends), ``pieces`` that piece.

The tree of the pieces is a table of hashes. A row of it is a key, ``node * SHIFT + character``, the node to which they
lead, and the piece that ends there or -1. The score of the unknown piece stands among those of the pieces.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.kernels.compiled import exactly_compiled

SHIFT = 1 << 21
"""More than there are code points."""

SPREAD = 0x9E3779B97F4A7C15
"""Spreads neighbours over the table (Knuth 1998, section 6.4: multiplicative hashing)."""

Table = NDArray[np.int64]
Scores = NDArray[np.float32]
Numbers = NDArray[np.int32]


@exactly_compiled
def _slot(key: Any, table: int) -> Any:
    """Return where the search for a key begins in a table of 2^k slots."""
    return np.int64((np.uint64(key) * np.uint64(SPREAD)) >> np.uint64(20)) & (table - 1)


@exactly_compiled
def _row(table: Table, key: Any) -> int:
    """Return the row of a key, or -1."""
    slot = _slot(key, len(table))
    while table[slot, 0] >= 0 and table[slot, 0] != key:
        slot = (slot + 1) & (len(table) - 1)
    return slot if table[slot, 0] >= 0 else -1


@exactly_compiled
def tabulate(rows: Table, size: int) -> Table:
    """Return the rows in a table of ``size``, a power of two greater than their number; free rows have key -1."""
    table = np.full((size, 3), -1, np.int64)
    for k in range(len(rows)):
        slot = _slot(rows[k, 0], size)
        while table[slot, 0] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = rows[k]
    return table


@exactly_compiled
def advance(
    text: NDArray[np.uint32],
    span: tuple[int, int, bool],
    table: Table,
    scores: Scores,
    unknown: int,
    largest: float,
    totals: Scores,
    starts: Numbers,
    pieces: Numbers,
) -> tuple[int, int]:
    """Extend the ways; return where to go on, and the furthest place that a piece reaches.

    ``span`` is where to begin, the furthest place so far, and whether the text is final: unless it is, the end is
    the first place from which a piece could reach beyond the text.
    """
    begin, furthest, final = span
    for start in range(begin, len(text)):
        if abs(totals[start]) > largest:
            for end in range(start + 1, furthest + 1):
                totals[end] = totals[end] - totals[start]
            totals[start] = np.float32(0)
        node, end, alone = 0, start, False
        while end < len(text):
            slot = _row(table, np.int64(node) * SHIFT + text[end])
            if slot < 0:
                break
            node, piece, end = table[slot, 1], table[slot, 2], end + 1
            if piece >= 0:
                total = totals[start] + scores[piece]
                if starts[end] < 0 or total > totals[end]:
                    totals[end], starts[end], pieces[end] = total, start, piece
                alone = alone or end == start + 1
                furthest = max(furthest, end)
        else:
            if not final:
                return start, furthest
        if not alone:
            total = totals[start] + scores[unknown]
            if starts[start + 1] < 0 or total > totals[start + 1]:
                totals[start + 1], starts[start + 1], pieces[start + 1] = total, start, unknown
            furthest = max(furthest, start + 1)
    return len(text), furthest


@exactly_compiled
def meeting(starts: Numbers, begin: int, furthest: int) -> int:
    """Return the last place that the best ways to ``begin`` and to all places beyond have in common."""
    common = begin
    for end in range(begin + 1, furthest + 1):
        other = end if starts[end] >= 0 else common
        while common != other:
            if common > other:
                common = starts[common]
            else:
                other = starts[other]
    return common


@exactly_compiled
def way(starts: Numbers, pieces: Numbers, last: int) -> tuple[Numbers, Numbers]:
    """Return the pieces of the best way to ``last``, and where each ends."""
    count, place = 0, last
    while place > 0:
        count, place = count + 1, starts[place]
    best, ends = np.empty(count, np.int32), np.empty(count, np.int32)
    place = last
    for k in range(count - 1, -1, -1):
        best[k], ends[k] = pieces[place], place
        place = starts[place]
    return best, ends


@exactly_compiled
def spell(
    text: NDArray[np.uint32], pieces: Numbers, ends: Numbers, unknown: int, bytes_of: Numbers, running: bool
) -> Any:
    """Return rows of ids, starts and ends, with what is unknown in bytes, or as one id for a run where there are none.

    With ``running`` an unknown id goes before: a run that begins the text continues it, and is left out.
    """
    spelled = np.empty((3, len(pieces) * (4 if len(bytes_of) else 1)), np.int32)
    count, place = 0, 0
    for k in range(len(pieces)):
        start, place = place, ends[k]
        if pieces[k] == unknown and len(bytes_of):
            code = np.int64(text[start])
            more = 0 if code < 0x80 else 1 if code < 0x800 else 2 if code < 0x10000 else 3
            for byte in range(more, -1, -1):
                value = (code >> (6 * byte)) & 0x3F | 0x80
                if byte == more:
                    value = code if more == 0 else (0xF00 >> (more + 1)) & 0xFF | code >> (6 * more)
                spelled[0, count], spelled[1, count], spelled[2, count] = bytes_of[value], start, place
                count += 1
            continue
        if pieces[k] == unknown and running:
            if count:
                spelled[2, count - 1] = place
            continue
        running = pieces[k] == unknown
        spelled[0, count], spelled[1, count], spelled[2, count] = pieces[k], start, place
        count += 1
    return spelled[:, :count]


@exactly_compiled
def cut(text: NDArray[np.uint32], table: Table, scores: Scores, unknown: int, largest: float, bytes_of: Numbers) -> Any:
    """Return rows of ids, starts and ends of a whole text."""
    totals, starts = np.zeros(len(text) + 1, np.float32), np.full(len(text) + 1, -1, np.int32)
    pieces = np.empty(len(text) + 1, np.int32)
    advance(text, (0, 0, True), table, scores, unknown, largest, totals, starts, pieces)
    best, ends = way(starts, pieces, len(text))
    return spell(text, best, ends, unknown, bytes_of, False)
