"""Which pairs WordPiece merges: counts kept up to date, the best pair found in a heap."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

INSIDE = "##"
LEAST = 2
"""A pair that occurs less often is not merged."""

Pair = tuple[str, str]


def learn(words: Mapping[str, int], room: int) -> list[str]:
    """Return the characters of counted words, sorted, then merged pieces, at most ``room`` in all.

    Equal scores: the pair that occurs more often, then the first in code point order.
    """
    pairs = _Pairs(words)
    pieces = dict.fromkeys(sorted(pairs.symbols))
    while len(pieces) < room and (best := pairs.best()):
        pieces[pairs.merge(best)] = None  # two ways to build a piece make one
    return list(pieces)


def symbols_of(word: str) -> list[str]:
    """Return the characters of a word, those after the first marked."""
    return [word[0], *(INSIDE + character for character in word[1:])]


def joined(pair: Pair) -> str:
    """Return the piece that a merge makes."""
    return pair[0] + pair[1].removeprefix(INSIDE)


class _Pairs:
    """Words as symbols, and how often each symbol and each adjacent pair occurs."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._words = [symbols_of(word) for word in sorted(words)]
        self._counts = [words[word] for word in sorted(words)]
        self.symbols: Counter[str] = Counter()
        self._pairs: Counter[Pair] = Counter()
        self._places: defaultdict[Pair, set[int]] = defaultdict(set)
        self._partners: defaultdict[str, set[Pair]] = defaultdict(set)
        for place in range(len(self._words)):
            self._add(place, 1)
        self._rebuild()

    def best(self) -> Pair | None:
        """Return the pair with the greatest score; entries of the heap that are out of date are dropped."""
        while self._heap:
            entry = heappop(self._heap)
            if self._pairs[entry[2]] >= LEAST and entry == self._entry(entry[2]):
                return entry[2]
        return None

    def merge(self, pair: Pair) -> str:
        """Merge the pair wherever it stands; return the new symbol."""
        symbol = joined(pair)
        for place in list(self._places[pair]):
            self._add(place, -1)
            self._words[place] = list(_merged(self._words[place], pair, symbol))
            self._add(place, 1)
        # A smaller count of a symbol raises the score of every pair it is in, also in words left as they are.
        changed = self._partners[pair[0]] | self._partners[pair[1]] | self._partners[symbol]
        for other in changed:
            self._renew(other)
        if len(self._heap) > 4 * len(self._pairs) + 1000:
            self._rebuild()
        return symbol

    def _add(self, place: int, sign: int) -> None:
        word, count = self._words[place], sign * self._counts[place]
        for symbol in word:
            self.symbols[symbol] += count
        for pair in pairwise(word):
            self._pairs[pair] += count
            if sign > 0:
                self._places[pair].add(place)
                self._partners[pair[0]].add(pair)
                self._partners[pair[1]].add(pair)
            else:
                self._places[pair].discard(place)

    def _renew(self, pair: Pair) -> None:
        if self._pairs[pair] >= LEAST:
            heappush(self._heap, self._entry(pair))
        elif not self._pairs[pair]:
            del self._pairs[pair], self._places[pair]
            for symbol in {*pair}:
                self._partners[symbol].discard(pair)

    def _entry(self, pair: Pair) -> tuple[float, int, Pair]:
        count = self._pairs[pair]
        return -count / (self.symbols[pair[0]] * self.symbols[pair[1]]), -count, pair

    def _rebuild(self) -> None:
        self._heap = [self._entry(pair) for pair, count in self._pairs.items() if count >= LEAST]
        heapify(self._heap)


def _merged(word: list[str], pair: Pair, symbol: str) -> Iterator[str]:
    place = 0
    while place < len(word):
        found = (word[place], *word[place + 1 : place + 2]) == pair
        yield symbol if found else word[place]
        place += 2 if found else 1
