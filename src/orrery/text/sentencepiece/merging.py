"""SentencePiece's BPE: the neighbours that make the piece of the best score are joined first, the left ones of equals.

Paper: Sennrich, Haddow and Birch 2016. A list of merges in order cannot say the same: of three equal signs, the first
two join where there is one piece for two, and with pieces of any length no order of pairs always takes the left ones.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orrery.text.sentencepiece.file import NORMAL, SPACE, USER, SentencePieceModel
from orrery.text.sentencepiece.normaliser import Longest
from orrery.text.sentencepiece.pieces import Cutter, Cutting, PlacedPiece, Spelled, Spelling, byte_ids

REMEMBERED = 1 << 16
LONGEST_REMEMBERED = 64

_BITS = 21
"""The bits of a code point."""

_BLANKS = re.compile(f"{SPACE}+[^{SPACE}]*|[^{SPACE}]+")
_WITHIN = re.compile(f"[^{SPACE}]{SPACE}")


class Merging(Cutter):
    """Cut a normalised text into pieces by joining characters."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Take the ordinary and the user-defined pieces; the others are never found in a text."""
        self._unknown = model.unknown
        self._ids = model.ids(NORMAL, USER)
        self._ranks = {text: -model.pieces[id].score for text, id in self._ids.items()}
        self._whole = Longest(model.ids(USER))
        self._joined = {pair for text in self._ids for pair in map("".join, pairwise(text))}
        self._remembered = lru_cache(REMEMBERED)(self._cut)
        self._of_unit = lru_cache(REMEMBERED)(self._spelled)
        self._bytes = byte_ids(model)
        # Blanks begin words in most models: no piece has one behind another character.
        self._apart = not any(_WITHIN.search(text) for text in self._ids)

    def begin(self) -> Cutting:
        """Return the cutting of a new text, in memory for its longest word."""
        return _Units(self)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a whole text."""
        return self.begin().push(text, final=True)

    def cut(self, text: str) -> Spelled:
        """Return the ids of a whole text, and where they stand."""
        return Spelling(self._unknown, self._bytes, _Merged(self)).spell(text, final=True)

    def of_unit(self, unit: str) -> Iterator[Sequence[int]]:
        """Yield the ids of a text that no piece leaves, an unknown character as an id of its own or as bytes."""
        if len(unit) <= LONGEST_REMEMBERED:
            yield self._of_unit(unit)
            return
        for word in [unit] if self._whole.longest else self._words(unit):
            yield (self._of_unit if len(word) <= LONGEST_REMEMBERED else self._spelled)(word)

    def _words(self, text: str) -> Iterator[str]:
        """Yield the words of a text, many at once, where users have no pieces of their own."""
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)
        pairs = codes[:-1] << _BITS | codes[1:]
        places = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
        borders = 1 + np.flatnonzero(self._pairs[places] != pairs) if len(self._pairs) else np.arange(1, len(text))
        return (text[start:end] for start, end in pairwise([0, *borders.tolist(), len(text)]))

    def _spelled(self, unit: str) -> Sequence[int]:
        place = 0
        ids: list[int] = []
        while place < len(unit):
            _, parts = self.next(unit, place)
            for id, length in parts:
                known = id != self._unknown or not self._bytes
                ids += [id] if known else [self._bytes[byte] for byte in unit[place : place + length].encode()]
                place += length
        return ids

    @cached_property
    def _pairs(self) -> NDArray[np.int64]:
        """The neighbours that some piece holds, each as one number, in order."""
        return np.array(sorted(ord(pair[0]) << _BITS | ord(pair[1]) for pair in self._joined), np.int64)

    def units(self, text: str) -> list[str]:
        """Return the parts between which no piece reaches: those that begin with blanks, or else the whole."""
        return _BLANKS.findall(text) if self._apart else [text]

    def last_border(self, text: str) -> int:
        """Return the last place inside a text that no piece reaches across, or 0."""
        for place in range(len(text) - 1, 0, -1):
            pair = text[place - 1 : place + 1]
            blank = self._apart and pair[0] != SPACE == pair[1]
            if blank or (not self._whole.longest and pair not in self._joined):
                return place
        return 0

    @property
    def fused(self) -> int:
        """The id that stands for a run of unknown characters, or -1 where they are written in bytes."""
        return -1 if self._bytes else self._unknown

    def next(self, text: str, place: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Return where the word or the user-defined piece at ``place`` ends, with id and length of each part of it."""
        piece = self._whole.at(text, place)
        if piece:
            return place + len(piece), [(self._ids[piece], len(piece))]
        end = self._word(text, place)
        word = text[place:end]
        return end, (self._remembered if len(word) <= LONGEST_REMEMBERED else self._cut)(word)

    @property
    def reach(self) -> int:
        """How many characters behind a word decide where it ends."""
        return max(1, self._whole.longest)

    def _word(self, text: str, start: int) -> int:
        """Return where a word ends: no piece holds what stands on both sides, or a user-defined piece begins."""
        end, joined, whole = start + 1, self._joined, self._whole
        while end < len(text) and text[end - 1 : end + 1] in joined and not whole.at(text, end):
            end += 1
        return end

    def _cut(self, word: str) -> tuple[tuple[int, int], ...]:
        """Return id and length of each piece of a word."""
        ranks = self._ranks
        # By the place where a symbol starts: where it ends (0 once it is part of another), where the one before starts.
        ends, before = list(range(1, len(word) + 1)), list(range(-1, len(word)))
        waiting = [(ranks[pair], at, at + 2) for at, pair in enumerate(map("".join, pairwise(word))) if pair in ranks]
        heapify(waiting)
        while waiting:
            _, start, end = heappop(waiting)
            middle = ends[start]
            # Either symbol may have become part of another since the pair was found, or both of this very piece.
            if middle >= end or before[middle] != start or ends[middle] != end:
                continue
            ends[start], ends[middle], before[end] = end, 0, start
            for left, right in ((before[start], end), (start, ends[end] if end < len(word) else 0)):
                if left >= 0 and (rank := ranks.get(word[left:right])) is not None:
                    heappush(waiting, (rank, left, right))
        cut, start = [], 0
        while start < len(word):
            cut.append((self._ids.get(word[start : ends[start]], self._unknown), ends[start] - start))
            start = ends[start]
        return tuple(cut)


class _Merged:
    """The words of a text that are whole."""

    def __init__(self, rules: Merging) -> None:
        self._rules = rules
        self.settled = 0

    def push(self, text: str, offset: int, final: bool) -> Iterator[PlacedPiece]:
        """Yield the pieces of each user-defined piece and of each word between."""
        end_of_text = len(text) if final else len(text) - self._rules.reach
        while (place := self.settled - offset) < end_of_text:
            end, parts = self._rules.next(text, place)
            if end > end_of_text:
                break
            for id, length in parts:
                yield id, self.settled, self.settled + length
                self.settled += length


class _Units(Cutting):
    """The units of a text that are whole."""

    def __init__(self, rules: Merging) -> None:
        self._rules = rules
        self._held, self._last = "", -1

    def push(self, text: str, final: bool) -> list[int]:
        rules, text = self._rules, self._held + text
        border = len(text) if final else rules.last_border(text)
        self._held = text[border:]
        ids: list[int] = []
        for unit in rules.units(text[:border]):
            for unit_ids in rules.of_unit(unit):
                ids += unit_ids
        if rules.fused in ids:
            ids, before = [], [self._last, *ids]
            ids = [id for last, id in pairwise(before) if not last == id == rules.fused]
        self._last = ids[-1] if ids else self._last
        return ids
