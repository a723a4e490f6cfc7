"""Which pairs WordPiece merges: counts kept up to date, the best pair found in a heap."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from math import log

INSIDE = "##"
LEAST = 2
"""A pair that occurs less often is not merged."""

Pair = tuple[str, str]
Entry = tuple[float, int, Pair]


def learn(words: Mapping[str, int], limit: int) -> list[str]:
    """Return the characters of counted words, sorted, then merged pieces, at most ``limit`` in all.

    Equal gains: the pair that occurs more often, then the first in code point order. No merge that gains nothing.
    """
    pairs = _Pairs(words)
    pieces = dict.fromkeys(sorted(pairs.symbols))
    while len(pieces) < limit and (best := pairs.best()):
        pieces[pairs.merge(best)] = None  # two ways to build a piece make one
    return list(pieces)


def symbols_of(word: str) -> list[str]:
    """Return the characters of a word, those after the first marked."""
    return [word[0], *(INSIDE + character for character in word[1:])]


def joined(pair: Pair) -> str:
    """Return the piece that a merge makes."""
    return pair[0] + pair[1].removeprefix(INSIDE)


def gain(both: int, left: int, right: int, made: int, tokens: int) -> float:
    """Return by how many nats a merge raises the log likelihood ``sum_s c_s log(c_s / N)`` of the words.

    The merge turns ``both`` pairs of symbols that occur ``left`` and ``right`` times into one that occurs ``made``
    times already, among ``tokens`` symbols. Rounded, so that noise of the logarithms settles no tie.
    """
    changes = (left, left - both), (right, right - both), (made, made + both), (tokens - both, tokens)
    return round(sum(_xlogx(after) - _xlogx(before) for before, after in changes), 6)


def twice_gain(both: int, symbol: int, made: int, tokens: int) -> float:
    """Return the ``gain`` where both symbols of the pair are the same one."""
    changes = (symbol, symbol - 2 * both), (made, made + both), (tokens - both, tokens)
    return round(sum(_xlogx(after) - _xlogx(before) for before, after in changes), 6)


def _xlogx(count: int) -> float:
    return count * log(count) if count else 0.0


def pairs_of(word: list[str]) -> Iterator[Pair]:
    """Yield the adjacent pairs of a word, as many of each as a merge from the left would find."""
    before = None
    for pair in pairwise(word):
        if pair == before and pair[0] == pair[1]:  # the middle of aaa belongs to one pair
            before = None
            continue
        before = pair
        yield pair


class _Pairs:
    """Words as symbols, how often each symbol and each adjacent pair occurs, and what each merge would gain."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._words = [symbols_of(word) for word in sorted(words)]
        self._counts = [words[word] for word in sorted(words)]
        self.symbols: Counter[str] = Counter()
        self._tokens = 0
        self._pairs: Counter[Pair] = Counter()
        self._places: defaultdict[Pair, set[int]] = defaultdict(set)
        # The pairs whose gain depends on a symbol: those it is in, and those that would make it.
        self._touched: defaultdict[str, set[Pair]] = defaultdict(set)
        for place in range(len(self._words)):
            self._add(place, 1)
        self._newest: dict[Pair, Entry] = {}
        self._heap: list[Entry] = []
        for pair in list(self._pairs):
            self._renew(pair)

    def best(self) -> Pair | None:
        """Return the pair that gains most, if any gains.

        Merges leave fewer symbols in all, and with fewer of them every gain is smaller: an entry that was right when
        it was made is too high now, never too low. So the first that is still right is the best.
        """
        while self._heap:
            entry = heappop(self._heap)
            pair = entry[2]
            if self._newest.get(pair) != entry:
                continue
            now = self._entry(pair)
            if now == entry:
                return pair if -entry[0] > 0 else None
            self._push(now)
        return None

    def merge(self, pair: Pair) -> str:
        """Merge the pair wherever it stands; return the new symbol."""
        symbol = joined(pair)
        for place in list(self._places[pair]):
            self._add(place, -1)
            self._words[place] = list(_merged(self._words[place], pair, symbol))
            self._add(place, 1)
        for other in self._touched[pair[0]] | self._touched[pair[1]] | self._touched[symbol]:
            self._renew(other)
        return symbol

    def _add(self, place: int, sign: int) -> None:
        word, count = self._words[place], sign * self._counts[place]
        self._tokens += count * len(word)
        for symbol in word:
            self.symbols[symbol] += count
        for pair in pairs_of(word):
            self._pairs[pair] += count
            if sign > 0:
                self._places[pair].add(place)
                for symbol in (*pair, joined(pair)):
                    self._touched[symbol].add(pair)
            else:
                self._places[pair].discard(place)

    def _renew(self, pair: Pair) -> None:
        if self._pairs[pair] >= LEAST:
            self._push(self._entry(pair))
            return
        self._newest.pop(pair, None)
        if not self._pairs[pair]:
            del self._pairs[pair], self._places[pair]
            for symbol in (*pair, joined(pair)):
                self._touched[symbol].discard(pair)

    def _push(self, entry: Entry) -> None:
        if self._newest.get(entry[2]) != entry:
            self._newest[entry[2]] = entry
            heappush(self._heap, entry)

    def _entry(self, pair: Pair) -> Entry:
        both, (left, right) = self._pairs[pair], pair
        made = self.symbols[joined(pair)]
        if left == right:
            return -twice_gain(both, self.symbols[left], made, self._tokens), -both, pair
        return -gain(both, self.symbols[left], self.symbols[right], made, self._tokens), -both, pair


def _merged(word: list[str], pair: Pair, symbol: str) -> Iterator[str]:
    place = 0
    while place < len(word):
        merges = (word[place], *word[place + 1 : place + 2]) == pair
        yield symbol if merges else word[place]
        place += 2 if merges else 1
