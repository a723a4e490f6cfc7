"""Which rows are held back: by a hash of their texts, equal texts together, each label on both sides if it can be."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

Classes = Sequence[tuple[str, ...]]
"""The labels of each row; none where it has none."""
MOST_RANGES = 10
"""Ranges into which numbers to be learned are cut, so that both sides have small and large ones."""

LARGEST = 1 / 3
"""Of all rows: more that stay together are never held back."""
ATTEMPTS, TRIED = 32, 20_000
"""Orders that are tried where a label stays without a row held back, and the groups that are gone through for it."""


@runtime_checkable
class Parted(Protocol):
    """A row that can be trained on or held back."""

    @property
    def where(self) -> str:
        """Where it stands, as errors name it."""
        ...

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts that should not stand on both sides, the one that matters most first."""
        ...

    @property
    def whole(self) -> tuple[str, ...]:
        """All that is read of it: rows that share this are never parted."""
        ...


def folded(text: str) -> str:
    """Return a text but for white space and capital letters: texts that share it count as equal."""
    return " ".join(text.split()).casefold()


def divide(rows: Sequence[Parted], every: int, classes: Classes | None = None) -> list[bool]:
    """Say of each row whether it is held back: about one in ``every`` of each label, whatever the order of the file.

    Rows that share a text are never parted. Where rows have several texts, as a question and its paragraph, those that
    share any of them stay together; else those that share the first; else those that share all: the first of these
    that holds back about as much, and of as many labels, as the last does. A label that cannot be parted is trained on.
    Where nothing could be held back so, equal rows are parted: better a score that says too much, and is told to.

    Args:
        rows: all of them.
        every: of so many about one is held back, at least one of each label.
        classes: the labels of each row.
    """
    labels = [own or ("",) for own in classes or [()] * len(rows)]
    wholes = _together([[_key(*row.whole)] for row in rows])
    finest = _chosen(wholes, labels, every)
    if not any(finest):
        return _chosen(_numbered(wholes), labels, every)
    if all(row.parts == row.whole and len(row.parts) == 1 for row in rows):
        return finest
    for keys in (_any_part, _first_part):
        held_back = _chosen(_together([keys(row) for row in rows]), labels, every)
        as_many = sum(finest) / 2 <= sum(held_back) <= 2 * sum(finest)
        if as_many and len(_of(held_back, labels)) >= len(_of(finest, labels)):
            return held_back
    return finest


def ranges(rows: Sequence[Parted], numbers: Sequence[float], every: int) -> list[tuple[str, ...]]:
    """Return the range that each row's number lies in, as a label: ranges of as many rows, at most ten of them.

    Of few different texts there are fewer, so that some of each can be held back.
    """
    texts = len({row.whole for row in rows})
    count = max(1, min(MOST_RANGES, texts // (2 * every)))
    ordered = sorted(numbers)
    bounds = sorted({ordered[len(ordered) * place // count] for place in range(1, count)})
    return [(str(sum(number >= bound for bound in bounds)),) for number in numbers]


def _any_part(row: Parted) -> list[str]:
    return [_key(text) for text in row.parts]


def _first_part(row: Parted) -> list[str]:
    return [_key(row.parts[0])]


def _key(*texts: str) -> str:
    return hashlib.sha256(repr([folded(text) for text in texts]).encode("utf-8", "surrogatepass")).hexdigest()


def _numbered(keys: Sequence[str]) -> list[str]:
    """Return a key of its own for each row: that of its text, and how many had it before."""
    met: Counter[str] = Counter()
    own_keys = []
    for key in keys:
        met[key] += 1
        own_keys.append(_key(key, str(met[key])))
    return own_keys


def _of(held: Sequence[bool], labels: Classes) -> set[str]:
    return {label for back, own in zip(held, labels, strict=True) if back for label in own}


def _together(keys: Sequence[Sequence[str]]) -> list[str]:
    """Return a key for each row, the same for rows that share one, directly or through others: the smallest of all."""
    home: dict[str, str] = {}

    def root(key: str) -> str:
        while home.setdefault(key, key) != key:
            home[key] = home[home[key]]
            key = home[key]
        return key

    for first, *others in keys:
        for other in others:
            low, high = sorted((root(first), root(other)))
            home[high] = low
    return [root(own[0]) for own in keys]


def _chosen(keys: Sequence[str], labels: Classes, every: int) -> list[bool]:
    """Say of each row whether it is held back; those of one key stay together.

    Which labels can be held back together depends on the groups that are taken first: further orders are tried as long
    as a label is missing.
    """
    best = _Groups(keys, labels, 0, every)
    for attempt in range(1, min(ATTEMPTS, 1 + TRIED // max(1, len(keys)))):
        if not best.missing:
            break
        best = min(best, _Groups(keys, labels, attempt, every), key=lambda groups: groups.missing)
    return [key in best.held for key in keys]


class _Groups:
    """Rows that stay together, by their key, and which of them are held back; another ``attempt`` is another order."""

    def __init__(self, keys: Sequence[str], labels: Classes, attempt: int, every: int) -> None:
        self.size = Counter(keys)
        self.labels: dict[str, Counter[str]] = defaultdict(Counter)
        for key, own in zip(keys, labels, strict=True):
            self.labels[key].update(own)
        self.with_label: dict[str, list[str]] = defaultdict(list)
        for key in sorted(self.labels, key=lambda key: _key(str(attempt), key) if attempt else key):
            for label in self.labels[key]:
                self.with_label[label].append(key)
        self.rows = Counter(label for own in labels for label in own)
        self.held: set[str] = set()
        self.groups_held: Counter[str] = Counter()
        self.rows_held: Counter[str] = Counter()
        order = sorted(
            self.with_label, key=lambda label: (len(self.with_label[label]), _key(str(attempt), label))
        )  # the rarest first
        wanted = {label: max(1, round(self.rows[label] / every)) for label in order}
        for label in order:
            self._fill(label, wanted)

    @property
    def missing(self) -> int:
        """The labels that could be held back by themselves, and are not."""
        return sum(len(keys) > 1 and not self.groups_held[label] for label, keys in self.with_label.items())

    def _fill(self, label: str, wanted: Mapping[str, int]) -> None:
        """Hold groups of a label back until it has its share, first those whose other labels lack theirs too."""

        def satisfied(key: str) -> int:
            return sum(self.rows_held[other] >= wanted[other] for other in self.labels[key])

        waiting = sorted((key for key in self.with_label[label] if key not in self.held), key=satisfied)
        for key in waiting:
            missing = wanted[label] - self.rows_held[label]
            if missing <= 0:
                return
            if self.labels[key][label] <= missing and self._can_go(key):
                self._hold(key)
        if not self.groups_held[label]:  # every one of them is larger than the share: the smallest
            small = (key for key in waiting if self._can_go(key) and not self._is_too_large(key))
            smallest = min(small, key=lambda key: self.size[key], default=None)
            if smallest is not None:
                self._hold(smallest)

    def _can_go(self, key: str) -> bool:
        """Whether each label of a group is still trained on without it."""
        return all(len(self.with_label[label]) - self.groups_held[label] > 1 for label in self.labels[key])

    def _is_too_large(self, key: str) -> bool:
        """Whether rows that stay together are so many that what is trained on would lack them."""
        return self.size[key] > max(1, LARGEST * sum(self.size.values()))

    def _hold(self, key: str) -> None:
        self.held.add(key)
        self.groups_held.update(self.labels[key].keys())
        self.rows_held.update(self.labels[key])
