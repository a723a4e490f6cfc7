"""SentencePiece's BPE: the neighbours that make the piece of the best score are joined first, the left ones of equals.

Paper: Sennrich, Haddow and Birch 2016. A list of merges in order cannot say the same: of three equal signs, the first
two join where there is one piece for two, and with pieces of any length no order of pairs always takes the left ones.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

from orrery.text.sentencepiece.file import NORMAL, USER, Model
from orrery.text.sentencepiece.normaliser import Longest
from orrery.text.sentencepiece.segments import Cutter, Cutting, Segment, Spelled, Spelling

REMEMBERED = 1 << 16
LONGEST_REMEMBERED = 64


class Merging(Cutter):
    """Cut a normalised text into pieces by joining characters."""

    def __init__(self, model: Model) -> None:
        """Take the ordinary and the user-defined pieces; the others are never found in a text."""
        self._model = model
        self._unknown = model.unknown
        self._ids = model.ids(NORMAL, USER)
        self._ranks = {text: -model.pieces[id].score for text, id in self._ids.items()}
        self._whole = Longest(model.ids(USER))
        self._joined = {pair for text in self._ids for pair in map("".join, pairwise(text))}
        self._remembered = lru_cache(REMEMBERED)(self._cut)

    def begin(self) -> Cutting:
        """Return the cutting of a new text, in memory for its longest word."""
        return Spelling(self._model, _Merged(self))

    def cut(self, text: str) -> Spelled:
        """Return the ids of a whole text."""
        return self.begin().push(text, final=True)

    def next(self, text: str, place: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Return where the word or the user-defined piece at ``place`` ends, with id and length of each part of it."""
        whole = self._whole.at(text, place)
        if whole:
            return place + len(whole), [(self._ids[whole], len(whole))]
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
        found, start = [], 0
        while start < len(word):
            found.append((self._ids.get(word[start : ends[start]], self._unknown), ends[start] - start))
            start = ends[start]
        return tuple(found)


class _Merged:
    """The words of a text that are whole."""

    def __init__(self, rules: Merging) -> None:
        self._rules = rules
        self.settled = 0

    def push(self, text: str, offset: int, final: bool) -> Iterator[Segment]:
        """Yield the segments of each user-defined piece and of each word between."""
        whole = len(text) if final else len(text) - self._rules.reach
        while (place := self.settled - offset) < whole:
            end, parts = self._rules.next(text, place)
            if end > whole:
                break
            for id, length in parts:
                yield id, self.settled, self.settled + length
                self.settled += length
